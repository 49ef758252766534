"""Workers on the machines of a Ray cluster: Ray hands out shards, or batches of a data set, to a pool of actors.

An actor has one engine, and a chain that travelled as a pickle. Ray repeats a task whose actor has died, so a shard or
a batch may be begun twice; records and receipts make it once. `CheckpointConfig` of Ray is not used: it holds every id
in memory, and deletes what it knows when the work has ended.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from socket import create_connection
from typing import TYPE_CHECKING, Any

from askance.errors import AskanceError, ConfigError, StoreError, UsageError, optional_library
from askance.images import Image
from askance.models import run_sync
from askance.scale.coordinator import Coordinator, share
from askance.scale.shard_worker import engine_of, packed, this_worker, unpacked
from askance.scale.shards import Receipt

if TYPE_CHECKING:
    from askance.chains import Chain, Given
    from askance.chat import JsonObject
    from askance.models import Model
    from askance.replay import Ledger
    from askance.scale.workers import Reader

ON_GPU = frozenset({"hf", "vllm"})
"""Providers whose models run in the process of a worker, on a GPU where there is one."""
PICTURES: Mapping[str, str] = {"image": "image"}
"""Columns of a data set that has nothing but pictures."""
KNOCKS_FOR = 5.0
"""Seconds that the machine at an address of Ray has to take a connection."""
ANSWERS_WITHIN = 60.0
"""Seconds that the coordinator has for an answer; it is begun again where it has died."""


@dataclass(frozen=True, kw_only=True)
class RayWorkers:
    """Actors of a Ray cluster.

    Args:
        count: how many there are, at most.
        address: of the cluster that this machine belongs to, `auto` or `HEAD:6379`; None is that of `RAY_ADDRESS`,
            else one that begins on this machine, at the loopback alone.
        gpus: of each worker; None is 1 for models that run in the process, where the cluster has GPUs.
    """

    count: int
    address: str | None = None
    gpus: float | None = None

    def receipts(self, reader: Reader, numbers: Sequence[int], *, ledger: Ledger | None) -> Generator[Receipt]:
        """See `Workers`.

        Raises:
            MissingExtra: Ray is not installed.
            UsageError: the address is one of Ray's client.
            ConfigError: there is no cluster at the address.
        """
        ray = self.begin()
        rows = ray.data.from_items([{"shard": number} for number in numbers], override_num_blocks=len(numbers))
        receipts = rows.map_batches(
            _ShardActor,
            fn_constructor_args=(packed(reader.asking(RayAsk.begun(ledger))),),
            batch_size=1,
            num_gpus=self.gpus_of(reader.models),
            compute=_pool(ray, min(self.count, len(numbers))),
        )
        for row in receipts.iter_rows():
            yield Receipt(**json.loads(row["receipt"]))

    def begin(self) -> Any:
        """The package of Ray, connected to the cluster; one that is connected already stays.

        Raises:
            MissingExtra: it is not installed.
            UsageError: the address is one of Ray's client.
            ConfigError: there is no cluster at the address.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        address = self.address or os.environ.get("RAY_ADDRESS")
        if address is None:  # its ports are at the loopback alone, as where Ray offers no clusters
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        else:
            _check_address(address)
        ray = optional_library("ray", "ray")
        data = optional_library("ray.data", "ray")
        if not ray.is_initialized():
            quiet = {"logging_level": logging.WARNING, "log_to_driver": False}
            try:
                if address is None:
                    cores = max(self.count + 1, os.cpu_count() or 1)
                    ray.init(address="local", num_cpus=cores, include_dashboard=False, **quiet)
                else:
                    ray.init(address=address, **quiet)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise ConfigError(
                    f"There is no Ray cluster at {address!r}: {error}.",
                    hint="`ray start --head` begins one; without an address one is begun on this machine.",
                ) from error
        data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)  # it tells of its own progress
        return ray

    def gpus_of(self, models: Iterable[Model]) -> float | None:
        """GPUs that a worker is given which asks these models."""
        if self.gpus is not None:
            return self.gpus or None
        local = any(model.id.provider in ON_GPU and not model.id.endpoint for model in models)
        return 1.0 if local and optional_library("ray").cluster_resources().get("GPU") else None


def _check_address(address: str) -> None:
    """Knocks at an address, since Ray itself waits for most of a minute.

    Raises:
        UsageError: it is one of Ray's client, by which Ray Data does not run.
        ConfigError: nobody is there.
    """
    if address.startswith("ray://"):
        raise UsageError(
            f"{address!r} is an address of Ray's client, by which Ray Data does not run.",
            hint="Run the command on a machine of the cluster, with `--address auto` or HEAD:6379.",
        )
    host, _, port = address.rpartition(":")
    try:
        if host and port.isdecimal():  # else it is a word such as `auto`
            create_connection((host, int(port)), timeout=KNOCKS_FOR).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"There is no Ray cluster at {address!r}: {error}.",
            hint="`ray start --head` on that machine begins one, and says its address.",
        ) from error


def map_dataset(
    dataset: Any, chain: Chain, *, columns: Mapping[str, str] = PICTURES, workers: RayWorkers, batch_size: int = 32
) -> Any:
    """The pictures of a Ray data set, read by a chain: a data set of lines.

    Args:
        dataset: of `ray.data`.
        chain: reads a picture; its models' engine has the records of a folder or of a database.
        columns: that have the `image` (paths, addresses, bytes of files, or pixels as `ray.data.read_images` gives
            them), its `name`, the `options` to choose from and the `question`; a picture without a name is called by
            its path or address, else by its digest.
        workers: that read it.
        batch_size: pictures that an actor is given at a time; they are read side by side.

    Returns:
        A `ray.data.Dataset` of the columns `image`, its name; `outcome`; and `line`, as a run's `samples.jsonl` has it.

    Raises:
        MissingExtra: Ray is not installed.
        UsageError: a column has another purpose, or the chain cannot be sent to workers.
    """
    if unknown := sorted(columns.keys() - {"image", "name", "options", "question"}):
        raise UsageError(f"A chain takes no {unknown[0]!r}.", hint="It takes image, name, options and question.")
    ray, engine = workers.begin(), engine_of(chain.models)
    budget = None if engine is None or engine.recorder.records.remote else engine.budget
    ask = RayAsk.begun(None if budget is None else budget.ledger)
    return dataset.map_batches(
        _BatchActor,
        fn_constructor_args=(packed((chain, {"image": "image", **columns}, ask)),),
        batch_size=batch_size,
        num_gpus=workers.gpus_of(chain.models),
        compute=_pool(ray, workers.count),
    )


def _pool(ray: Any, size: int) -> Any:
    """A pool of so many actors, each with one task at work and one waiting."""
    return ray.data.ActorPoolStrategy(min_size=1, max_size=size, initial_size=size, max_tasks_in_flight_per_actor=2)


class RayAsk:
    """Asks a coordinator that is an actor; see `Ask`.

    Args:
        actor: its handle.
    """

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    @classmethod
    def begun(cls, ledger: Ledger | None) -> RayAsk:
        """A coordinator begins, on the machine that the work was begun on; where it dies, it begins again."""
        ray = optional_library("ray")
        strategies = optional_library("ray.util.scheduling_strategies")
        here = strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        actor = ray.remote(Coordinator).options(
            num_cpus=0, max_restarts=-1, max_task_retries=-1, max_concurrency=16, scheduling_strategy=here
        )
        return cls(actor.remote(ledger))

    def __reduce__(self) -> tuple[Any, ...]:
        # Only Ray's own pickles can hold a handle.
        return _ask_of, (optional_library("ray.cloudpickle").dumps(self._actor),)

    def __call__(self, *words: Any, **named: Any) -> Any:
        ray = optional_library("ray")
        try:
            return ray.get(self._actor.call.remote(*words, **named), timeout=ANSWERS_WITHIN)
        except ray.exceptions.RayError as error:
            raise StoreError(
                f"The coordinator of the work does not answer: {type(error).__name__}.",
                hint="The same command goes on.",
            ) from error


def _ask_of(handle: bytes) -> RayAsk:
    return RayAsk(optional_library("ray.cloudpickle").loads(handle))


class _ShardActor:
    """Reads shards, or blocks of samples, one after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    @cached_property
    def _reader(self) -> Reader:
        return unpacked(self._content)

    def __call__(self, rows: Mapping[str, Any]) -> Mapping[str, list[str]]:
        return {"receipt": [self._receipt(int(number)) for number in rows["shard"]]}

    def _receipt(self, number: int) -> str:
        try:
            receipt = self._reader(number)
        except AskanceError as error:  # the chain cannot be made here, or its records not be opened
            receipt = Receipt(shard=number, worker=this_worker(), error=str(error), kind=type(error).__name__)
        return json.dumps(asdict(receipt))


class _BatchActor:
    """Reads the rows of a data set, a batch of them side by side."""

    def __init__(self, content: bytes) -> None:
        self._chain: Chain
        self._columns: Mapping[str, str]
        self._chain, self._columns, ask = unpacked(content)
        engine = engine_of(self._chain.models)
        if engine is not None:
            share(engine, ask)

    def __call__(self, batch: Mapping[str, Any]) -> Mapping[str, list[str]]:
        lines = run_sync(self._read([*self._given(batch)]))
        return {
            "image": [line["image"] for line in lines],
            "outcome": [line["outcome"] for line in lines],
            "line": [json.dumps(line, ensure_ascii=False) for line in lines],
        }

    async def _read(self, given: Sequence[Given]) -> list[JsonObject]:
        return [reading.to_dict() async for reading in self._chain.read_all(given)]

    def _given(self, batch: Mapping[str, Any]) -> Iterator[Given]:
        """The rows of a batch, as a chain takes them."""
        values = {key: batch[column] for key, column in self._columns.items()}
        for row in zip(*values.values(), strict=True):
            given: dict[str, Any] = dict(zip(values, row, strict=True))
            image = _image(given["image"])
            name = given.get("name") or (given["image"] if isinstance(given["image"], str) else None)
            options = given.get("options")
            yield {
                **given,
                "image": image,
                **({} if name is None else {"name": str(name)}),
                **({} if options is None else {"options": [str(option) for option in options]}),
            }


def _image(value: Any) -> Any:
    """A picture as a chain takes it: a path, an address, the bytes of a file, or pixels."""
    if isinstance(value, (str, bytes)):
        return value
    return Image.from_array(value)
