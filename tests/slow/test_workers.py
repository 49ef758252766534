"""Workers of this machine that read a corpus, shard by shard."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import types
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from multiprocessing import forkserver
from pathlib import Path
from secrets import token_hex
from threading import Thread
from typing import Any

import pytest

from askance.chains import verbalize
from askance.errors import AskanceError, AuthError, ConfigError, UsageError
from askance.evals import Run
from askance.models import ScriptedModel
from askance.replay import Budget
from askance.replay.leases import EXPIRY
from askance.scale import (
    CorpusEnd,
    LocalWorkers,
    RayWorkers,
    Receipt,
    ShardedCorpus,
    ShardReader,
    map_dataset,
    merge_corpus,
    read_corpus,
    status_of,
)
from askance.scale.coordinator import Ask
from tests.faults.run import CALLS, answer, asked_twice, picture, stable
from tests.scale.corpus import Corpus, lines_of, same_answers
from tests.scripted import OPTIONS
from tests.servers import FakeEndpoint, Reply, Seen, error
from tests.slow.postgres_server import PASSWORD, serving
from tests.slow.servers import s3_server

pytestmark = [
    pytest.mark.slow(group="workers"),
    pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ray\..*"),  # what Ray uses of itself
    pytest.mark.filterwarnings(r"ignore::FutureWarning:ray\..*"),
    pytest.mark.filterwarnings(r"ignore:.*ray:ResourceWarning"),  # processes that outlive their handle
    pytest.mark.filterwarnings(r"ignore:subprocess \d+ is still running:ResourceWarning"),
]


AT_ONCE = 4
"""Calls of one worker at a time."""


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    with FakeEndpoint(lambda seen: answer(seen.json), delay=0.05) as endpoint:
        yield endpoint


def test_workers_make_the_run_of_one_process(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    """Two workers, of which one is killed in mid-shard; nothing but the calls under way is paid for twice."""
    corpus = Corpus(url=endpoint.url, home=tmp_path, concurrency=AT_ONCE)

    def kill() -> None:
        endpoint.wait(20)
        os.kill(multiprocessing.active_children()[0].pid or 0, signal.SIGKILL)

    killer = Thread(target=kill)
    killer.start()
    end = corpus.read(LocalWorkers(2))
    killer.join()
    assert (end.failed, end.left, end.waiting) == ((), 0, 0)
    assert asked_twice(endpoint) <= AT_ONCE
    assert len({seen.body for seen in endpoint.requests}) == 12 * CALLS + 1, "and what the endpoint can do"

    shards = ShardedCorpus(corpus.out)
    status = status_of(shards)
    assert (status.read, status.done, status.outcomes) == (12, status.shards, {"answered": 12})
    merge_corpus(shards, tmp_path / "merged")
    assert same_answers(tmp_path / "merged", corpus.alone())
    assert Run.open(tmp_path / "merged").records.get_all(Run.open(corpus.alone()).records.keys())
    asked = len(endpoint.requests)
    assert corpus.read(LocalWorkers(2)).waiting == 0, "all of it has receipts"
    assert len(endpoint.requests) == asked


def test_a_budget_is_one_for_all_workers(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    corpus = Corpus(url=endpoint.url, home=tmp_path, budget=Budget(calls=30))
    end = corpus.read(LocalWorkers(2))
    assert end.left or end.waiting
    assert 25 < len(endpoint.requests) <= 30
    assert len(endpoint.requests) == len({seen.body for seen in endpoint.requests})

    end = replace(corpus, budget=Budget(calls=200)).read(LocalWorkers(2))
    assert (end.left, end.waiting) == (0, 0)
    assert len(endpoint.requests) == 12 * CALLS + 1
    assert asked_twice(endpoint) == 0


def test_an_endpoint_that_refuses_everything_ends_the_work(tmp_path: Path) -> None:
    with FakeEndpoint(lambda _: error(401, "no key")) as endpoint:
        corpus = Corpus(url=endpoint.url, home=tmp_path)
        with pytest.raises(AuthError, match=r"asks for a key\. .* So ended shard 0000\d, on "):
            corpus.read(LocalWorkers(2))
        assert not [*corpus.cut().receipts()]


def test_a_command_that_is_killed_goes_on(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    """The process that hands out the shards is killed; its workers end, and the same command finishes."""
    killed_and_resumed(endpoint, Corpus(url=endpoint.url, home=tmp_path), times=1)


@pytest.mark.soak
def test_a_command_that_is_killed_twenty_times_goes_on(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    killed_and_resumed(endpoint, Corpus(url=endpoint.url, home=tmp_path, pictures=120, shards=24), times=20)


@pytest.mark.soak
def test_a_list_of_ten_million_names_is_resumed_at_once(tmp_path: Path) -> None:
    """The list is cut once; then the list's digest and the receipts are all that is looked at."""
    tables = [tmp_path / f"list-{part}.csv" for part in range(10)]
    for part, table in enumerate(tables):
        numbers = range(part * 1_000_000, (part + 1) * 1_000_000)
        addresses = (f"https://127.0.0.1:9/pictures/{number:08}.jpg\n" for number in numbers)
        table.write_text("".join(["image\n", *addresses]), encoding="ascii")
    command = [sys.executable, "-m", "askance", "scale", "run", "verbalize", *map(str, tables), "--shards", "2000"]
    command += ["--vlm", "openai:m@http://127.0.0.1:9/v1", "--out", str(tmp_path / "corpus"), "--workers", "1"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as first:
        while not (tmp_path / "corpus" / "corpus.json").exists():
            assert first.poll() is None
            time.sleep(1)
        first.kill()
    corpus = ShardedCorpus(tmp_path / "corpus")
    assert corpus.pictures == 10_000_000
    for number in corpus.numbers:
        corpus.keep(Receipt(shard=number, worker="", pictures=corpus.sizes[number]))
    started = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    assert time.monotonic() - started < 30
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1_000_000


def killed_and_resumed(endpoint: FakeEndpoint, corpus: Corpus, *, times: int) -> None:
    command = [*command_for(corpus, "scale", "run"), *("--out", str(corpus.out), "--shards", str(corpus.shards))]
    for _ in range(times):
        before = len(endpoint.requests)
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            endpoint.wait(before + 20)
            process.kill()
            assert process.communicate(timeout=30)[1] == "", "the end of the pipe: no worker is left"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert f"{corpus.pictures} of {corpus.pictures} images" in done.stderr
    assert asked_twice(endpoint) <= times * 2 * AT_ONCE
    assert {seen.path for seen in endpoint.requests} == {"/v1/chat/completions"}
    assert len({seen.body for seen in endpoint.requests}) == corpus.pictures * CALLS + 1
    merge_corpus(ShardedCorpus(corpus.out), corpus.home / "merged")
    subprocess.run([*command_for(corpus, "run"), "--quiet", "--out", str(corpus.home / "one")], check=True)
    assert same_answers(corpus.home / "merged", corpus.home / "one")


def test_a_worker_that_hangs_ends_itself(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It waits for an answer that never comes; another worker begins where it stopped."""
    getattr(forkserver, "_forkserver")._stop()  # noqa: B009  # so that workers print where this test looks
    hung, poison = list[Seen](), b64encode(picture(0).data)

    def reply(seen: Seen) -> Reply | str:
        if not hung and poison in seen.body:
            hung.append(seen)
            return Reply(delay=math.inf)
        return answer(seen.json)

    with FakeEndpoint(reply) as endpoint:
        corpus = Corpus(url=endpoint.url, home=tmp_path, pictures=4, shards=2)
        end = corpus.read(LocalWorkers(1), stall=10.0)
        assert (end.failed, end.left, end.waiting) == ((), 0, 0)
        assert asked_twice(endpoint) == 1
    assert len(hung) == 1
    assert "has read no picture for 10 s, and ends." in capfd.readouterr().err


@pytest.mark.xdist_group("storage")
def test_a_machine_that_is_lost_leaves_its_shards_on_object_storage(
    endpoint: FakeEndpoint, tmp_path: Path, storage_python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is killed, then all of the machine with its disk; another goes on from what was uploaded."""
    corpus = Corpus(url=endpoint.url, home=tmp_path, pictures=60, shards=2)
    one, other = tmp_path / "one-disk", tmp_path / "other-disk"

    def command(*words: str) -> list[str]:
        return [str(storage_python), "-m", "askance", "scale", *words]

    def reading(store: Path) -> list[str]:
        words = ["--store", str(store), "--out", "s3://runs/ads", "--shards", "2", "--keep-every", "1"]
        return [*command(), *command_for(corpus, "run")[3:], *words]

    with s3_server(storage_python, log=tmp_path / "s3.log") as server:
        settings = {"ENDPOINT_URL": server.url, "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b"}
        for name, value in {**settings, "DEFAULT_REGION": "us-east-1"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        urllib.request.urlopen(urllib.request.Request(f"{server.url}/runs", method="PUT"), timeout=30).close()
        endpoint.delay = 0.3
        with subprocess.Popen(reading(one), stderr=subprocess.DEVNULL) as first:
            endpoint.wait(40, timeout=240)  # the environment may be new, and is compiled first
            os.kill(workers_of(first.pid)[0], signal.SIGKILL)
            while not listed(server.url) >= {"samples.jsonl", "calls.jsonl"}:
                assert first.poll() is None
                time.sleep(0.2)
            first.kill()
        endpoint.delay = 0.01
        shutil.rmtree(one)
        before = len(endpoint.requests)
        watched = subprocess.run(command("watch", "s3://runs/ads", "--json"), capture_output=True, check=True)
        (under_way, *_) = json.loads(watched.stdout)["under_way"]
        assert 0 < under_way["read"] < under_way["of"]
        count = "import fsspec; files = fsspec.open_files('s3://runs/ads/shards/*/calls.jsonl', 'rb')\n"
        count += "print(sum(len(cassette.readlines()) for cassette in map(lambda file: file.open(), files)))"
        counted = subprocess.run([str(storage_python), "-c", count], capture_output=True, check=True)
        on_record = int(counted.stdout)
        assert on_record >= CALLS

        done = subprocess.run(reading(other), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "60 of 60 images, 2 of 2 shards." in done.stderr
        assert asked_twice(endpoint) <= before - on_record
        assert not [*other.rglob("samples.jsonl")], "what is done takes no room on the disk of a worker"
        subprocess.run([*command("merge", "s3://runs/ads"), "--out", str(tmp_path / "merged")], check=True)
    subprocess.run([*command_for(corpus, "run"), "--quiet", "--out", str(tmp_path / "alone")], check=True)
    assert same_answers(tmp_path / "merged", tmp_path / "alone")
    assert Run.open(tmp_path / "merged").totals == Run.open(tmp_path / "alone").totals


def workers_of(command: int) -> list[int]:
    """They are forked of one child of the command."""
    (server,) = children_of(command, "-f", "forkserver")
    return children_of(server)


def children_of(process: int, *words: str) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(process), *words], capture_output=True, text=True, check=True)
    return [int(pid) for pid in found.stdout.split()]


def listed(address: str) -> set[str]:
    """Names of the files that shards have in the bucket."""
    with urllib.request.urlopen(f"{address}/runs?list-type=2&prefix=ads/shards", timeout=30) as reply:
        return set(re.findall(r"([^/]+)</Key>", reply.read().decode()))


def command_for(corpus: Corpus, *words: str) -> list[str]:
    options = corpus.home / "options.json"
    options.write_text(json.dumps(OPTIONS), encoding="utf-8")
    return [
        *(sys.executable, "-m", "askance", *words, "action-reason", str(corpus.files[0].parent)),
        *("--options", str(options), "--vlm", f"openai:fake-model@{corpus.url}"),
        *("--store", str(corpus.home / words[0]), "--concurrency", str(AT_ONCE)),
    ]


def test_an_evaluation_by_workers_is_that_of_one_process(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    """A task of somebody's own file; the scores are made where the command was typed."""
    corpus = Corpus(url=endpoint.url, home=tmp_path)
    data = tmp_path / "data.jsonl"
    rows = [{"id": str(n), "image": str(file), "tags": {"odd": True}} for n, file in enumerate(corpus.files)]
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    task = str(Path(__file__).parents[2] / "examples" / "odd_or_not.py")
    command = [sys.executable, "-m", "askance", "eval", "run", task, "--data", str(data), "--budget", "100calls"]
    command += ["--vlm", f"openai:fake-model@{endpoint.url}", "--concurrency", str(AT_ONCE)]
    for name, more in (("by-two", ["--workers", "2"]), ("by-one", [])):
        store, out = str(tmp_path / f"store-{name}"), str(tmp_path / name)
        done = subprocess.run([*command, *more, "--store", store, "--out", out], capture_output=True, check=True)
        assert b"calls spent" in done.stderr
        assert (f"Workers made {len(endpoint.requests) - 1} calls".encode() in done.stderr) == bool(more), "and a probe"
    assert same_answers(tmp_path / "by-two", tmp_path / "by-one")
    assert (tmp_path / "by-two" / "scores.jsonl").read_bytes() == (tmp_path / "by-one" / "scores.jsonl").read_bytes()
    assert asked_twice(endpoint) == len(endpoint.requests) // 2, "each run asked everything once"


# ---- what is wrong ---------------------------------------------------------------------------------------------------


def test_a_chain_that_cannot_be_sent(tmp_path: Path) -> None:
    corpus = Corpus(url="http://127.0.0.1:9/v1", home=tmp_path).cut()
    chain = verbalize(ScriptedModel(lambda _: "A cup."))
    with pytest.raises(UsageError, match=r"cannot be pickled: it was made of an object"):
        read_corpus(corpus, ShardReader(chain=chain, corpus=corpus.place), LocalWorkers(1))


def test_a_chain_that_is_not_installed_on_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker does not find the module that the chain is made of."""
    corpus = Corpus(url="http://127.0.0.1:9/v1", home=tmp_path).cut()
    module = types.ModuleType("only_here")
    exec("def tone(): ...", module.__dict__)
    monkeypatch.setitem(sys.modules, "only_here", module)
    reader = ShardReader(chain=module.tone, corpus=corpus.place)
    with pytest.raises(ConfigError, match=r"cannot be made on .*: ModuleNotFoundError: No module named 'only_here'"):
        read_corpus(corpus, reader, LocalWorkers(1))


class Stillborn:
    """A reader that ends the process in which it is made again."""

    tries = None
    models = ()

    def asking(self, ask: Ask, /) -> Stillborn:
        return self

    def __call__(self, number: int, /) -> Receipt:
        return Receipt(shard=number, worker="")

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (1,)


def test_workers_that_end_before_they_begin_are_not_replaced_without_end() -> None:
    with pytest.raises(AskanceError, match="3 workers ended before they could begin"):
        next(LocalWorkers(2).receipts(Stillborn(), range(10), ledger=None))


def test_a_system_without_forks_has_no_workers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    with pytest.raises(UsageError, match="This system forks no processes") as caught:
        LocalWorkers(2)
    assert "Ray" in str(caught.value.hint)


def test_workers_are_forked_of_a_process_with_one_thread() -> None:
    code = (
        "import askance.nodes.bare_process, askance.scale.shard_worker, os\nprint(len(os.listdir('/proc/self/task')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"1\n"


def test_a_shard_that_ends_every_worker_is_left_out(tmp_path: Path) -> None:
    """Its picture ends the process, as one may that a library cannot bear; the other shard is read."""
    poison = b64encode(picture(0).data)

    def deadly(seen: Seen) -> str:
        if poison in seen.body:
            for worker in multiprocessing.active_children():
                worker.kill()
        return answer(seen.json)

    with FakeEndpoint(deadly) as endpoint:
        corpus = Corpus(url=endpoint.url, home=tmp_path, pictures=4, shards=2)
        (failed,) = corpus.read(LocalWorkers(1)).failed
    assert f"Shard {failed.shard:05} ended 3 workers, one after the other" in str(failed.error)
    assert status_of(corpus.cut()).done == 1


# ---- Ray -------------------------------------------------------------------------------------------------------------


ON_ONE_CLUSTER = pytest.mark.xdist_group("ray")
"""The tests of Ray begin one cluster, beside those of processes."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster on this machine, which the workers of all tests below are actors of."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", token_hex(32))  # the home of each test is another
        patch.setenv("PGPASSWORD", PASSWORD)
        ray = RayWorkers(count=4).begin()
        yield ray
        ray.shutdown()


def actors(name: str) -> list[int]:
    """The processes of the actors whose class is called so."""
    found = subprocess.run(["pgrep", "-f", f"^ray::.*{name}"], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


@ON_ONE_CLUSTER
def test_the_ports_of_ray_are_at_the_loopback(cluster: Any) -> None:
    files = [Path("/proc/net") / name for name in ("tcp", "tcp6")]
    table = [line.split() for file in files for line in file.read_text(encoding="ascii").splitlines()[1:]]
    listening = {row[9]: row[1] for row in table if row[3] == "0A"}
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    for pid in subprocess.run(["pgrep", "-f", "ray"], capture_output=True, text=True, check=True).stdout.split():
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            with suppress(OSError):
                inode = str(link.readlink()).removeprefix("socket:[").rstrip("]")
                assert listening.get(inode, "0100007F:0").partition(":")[0] in loopback


@ON_ONE_CLUSTER
def test_workers_of_ray_that_die_stop_or_lose_the_database(
    cluster: Any, endpoint: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four workers one is killed, one is stopped past its lease; the database is started again."""
    with serving() as server:
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        corpus = Corpus(
            url=endpoint.url,
            home=tmp_path,
            store=server.address(front=str(tmp_path / "front")),
            pictures=24,
            shards=12,
            concurrency=AT_ONCE,
        )
        ended: list[CorpusEnd] = []
        work = Thread(target=lambda: ended.append(corpus.read(RayWorkers(count=4))))
        work.start()
        endpoint.wait(20, timeout=120)
        first, second, *_ = actors("_ShardActor")
        os.kill(first, signal.SIGKILL)
        os.kill(second, signal.SIGSTOP)
        stopped_at = time.monotonic()
        server.stop("immediate")
        server.start()
        time.sleep(max(0.0, EXPIRY + 2 - (time.monotonic() - stopped_at)))
        os.kill(second, signal.SIGCONT)
        work.join(240)
        assert ended == [CorpusEnd(failed=(), left=0, waiting=0)]
    assert len({seen.body for seen in endpoint.requests}) == 24 * CALLS + 1
    assert asked_twice(endpoint) <= 2 * AT_ONCE, "no more than the dead and the stopped worker had under way"
    merge_corpus(ShardedCorpus(corpus.out), tmp_path / "merged")
    assert same_answers(tmp_path / "merged", corpus.alone())


@ON_ONE_CLUSTER
def test_a_coordinator_that_is_killed_begins_again(cluster: Any, endpoint: FakeEndpoint, tmp_path: Path) -> None:
    """The actor that holds budget and pace dies in mid-work; the budget holds, and the work goes on."""
    corpus = Corpus(url=endpoint.url, home=tmp_path, budget=Budget(calls=60), rpm=1200.0)
    ended: list[CorpusEnd] = []
    work = Thread(target=lambda: ended.append(corpus.read(RayWorkers(count=2))))
    work.start()
    endpoint.wait(10, timeout=120)
    for pid in actors("Coordinator"):
        os.kill(pid, signal.SIGKILL)
    work.join(120)
    (end,) = ended
    assert end.left or end.waiting
    assert 30 < len(endpoint.requests) <= 60

    end = replace(corpus, budget=Budget(calls=300)).read(RayWorkers(count=2))
    assert (end.failed, end.left, end.waiting) == ((), 0, 0)
    assert len({seen.body for seen in endpoint.requests}) == 12 * CALLS + 1
    assert asked_twice(endpoint) == 0


@ON_ONE_CLUSTER
def test_the_data_set_of_another_pipeline(cluster: Any, endpoint: FakeEndpoint, tmp_path: Path) -> None:
    """Paths with options, and pixels as Ray reads them, as a stage of somebody's own."""
    corpus = Corpus(url=endpoint.url, home=tmp_path, pictures=6)
    alone = lines_of(corpus.alone())
    rows = cluster.data.from_items([{"path": str(file), "choices": OPTIONS} for file in corpus.files])
    pixels = cluster.data.read_images(str(corpus.files[0].parent), include_paths=True, mode="RGB")
    columns = {"image": "path", "options": "choices"}
    with corpus.chain() as chain:
        lines = map_dataset(rows, chain, columns=columns, workers=RayWorkers(count=2), batch_size=2)
        told = lines.take_all()
        looks = verbalize(next(iter(chain.models)))
        (seen, *_) = map_dataset(pixels, looks, columns={"name": "path"}, workers=RayWorkers(count=1)).take_all()
        with pytest.raises(UsageError, match="A chain takes no 'caption'"):
            map_dataset(rows, chain, columns={"caption": "path"}, workers=RayWorkers(count=1))
    by_name = {row["image"]: json.loads(row["line"]) for row in told}
    assert stable([by_name[line["image"]] for line in alone]) == stable(alone)
    assert seen["image"] in by_name, "pixels are called by the column of their names"
