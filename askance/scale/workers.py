"""Workers that read shards: the protocol, and processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener, wait
from pathlib import Path
from secrets import token_bytes
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Protocol

from askance.errors import AskanceError, UsageError
from askance.nodes.runnable import may_be_traced
from askance.scale.coordinator import Coordinator
from askance.scale.shard_worker import packed, unpacked
from askance.scale.shards import TRIES, Receipt
from askance.terminal import print_log

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

    from askance.models import Model
    from askance.replay import Ledger
    from askance.scale.coordinator import Ask


_FORKED = "forkserver"
"""How workers begin: one process without threads loads askance, and they are forked of it."""
_BARE, _LOADED = "askance.nodes.bare_process", "askance.scale.shard_worker"
"""What it loads: the first where nobody composes nodes."""


class Reader(Protocol):
    """What a worker does, as a value that can be pickled."""

    @property
    def tries(self) -> int | None:
        """How often a number may end its worker before it is left out; None where the reader sees to that."""
        ...

    @property
    def models(self) -> Iterable[Model]:
        """Those that it asks."""
        ...

    def asking(self, ask: Ask, /) -> Reader:
        """The reader, for workers that ask this coordinator."""
        ...

    def __call__(self, number: int, /) -> Receipt:
        """Reads what has the number; what a model, the disk or the records do stands in the receipt."""
        ...


class Workers(Protocol):
    """What reads shards side by side."""

    def receipts(self, reader: Reader, numbers: Sequence[int], *, ledger: Ledger | None) -> Generator[Receipt]:
        """The receipts of shards, as they come; whoever stops reading stops the workers.

        Args:
            reader: reads one shard.
            numbers: of the shards.
            ledger: of the budget, in a file; None where there is none, or the records bring one that is shared.

        Raises:
            UsageError: the reader cannot be sent to workers.
        """
        ...


class LocalWorkers:
    """Processes of this machine; one that dies is replaced, and its shard is begun again where it stopped.

    Args:
        count: how many there are.

    Raises:
        UsageError: this system forks no processes.
    """

    def __init__(self, count: int) -> None:
        if _FORKED not in multiprocessing.get_all_start_methods():
            raise UsageError(
                "This system forks no processes.", hint="Read in one process (`askance run`), or by workers of Ray."
            )
        self.count = count

    def receipts(self, reader: Reader, numbers: Sequence[int], *, ledger: Ledger | None) -> Generator[Receipt]:
        """See `Workers`."""
        waiting, working, deaths = deque(numbers), dict[Connection, _Worker](), Counter[int | None]()
        coordinator = Coordinator(ledger)
        with _CoordinatorSocket(coordinator) as socket:
            content = packed(reader.asking(socket.ask))
            bare = () if may_be_traced() else (_BARE,)
            multiprocessing.get_context(_FORKED).set_forkserver_preload([*bare, _LOADED])
            try:
                while waiting or working:
                    while waiting and len(working) < self.count:
                        worker = _Worker(content, waiting.popleft())
                        working[worker.pipe] = worker
                    for pipe in wait([*working]):
                        worker = working[pipe]  # pyright: ignore[reportArgumentType]
                        try:
                            receipt: Receipt | AskanceError | None = worker.pipe.recv()
                        except (EOFError, OSError):  # it has died
                            worker.end()
                            del working[worker.pipe]
                            if (end := _failure_after(worker, deaths, reader.tries)) is not None:
                                yield end
                            else:
                                waiting.appendleft(worker.number)
                            continue
                        if isinstance(receipt, AskanceError):
                            raise receipt
                        if receipt is None:
                            worker.ready, deaths[None] = True, 0
                            continue
                        if waiting:
                            worker.give(waiting.popleft())
                        else:
                            worker.end()
                            del working[worker.pipe]
                        yield receipt
            finally:
                for worker in working.values():
                    worker.end()
                coordinator.close()


def _failure_after(worker: _Worker, deaths: Counter[int | None], tries: int | None) -> Receipt | None:
    """What a worker that died means for its number: a receipt of the failure, or None where another worker begins it.

    Args:
        worker: that died.
        deaths: of workers, by the number that they read; None has those of workers that had not begun, in a row.
        tries: see `Reader`.

    Raises:
        AskanceError: workers end before they can begin.
    """
    deaths[worker.number if worker.ready else None] += 1
    if deaths[None] == TRIES:
        raise AskanceError(
            f"{TRIES} workers ended before they could begin.",
            hint="What they printed stands above; if nothing does, memory may be short. A script of yours has to keep "
            'its work below `if __name__ == "__main__":`, as workers load it, too.',
        )
    if deaths[worker.number] != tries:
        return None
    return Receipt(shard=worker.number, worker="", error="It ended its worker.")


class _Worker:
    """A process that reads one shard after the other.

    Args:
        content: the reader.
        number: of its first shard.
    """

    def __init__(self, content: bytes, number: int) -> None:
        context = multiprocessing.get_context(_FORKED)
        self.pipe, theirs = context.Pipe()
        args = (theirs, content, {**os.environ})
        self._process: ForkServerProcess = context.Process(target=_work, args=args, daemon=True)
        self._process.start()
        theirs.close()  # so that its end is seen here
        self.ready = False
        """Whether it has its reader."""
        self.give(number)

    def give(self, number: int) -> None:
        """Gives it a shard."""
        self.number = number
        with suppress(OSError):  # it has died, which is seen where its receipt is waited for
            self.pipe.send(number)

    def end(self) -> None:
        """Ends it; what it was asking is lost, what was answered is on record."""
        self.pipe.close()
        self._process.kill()
        self._process.join()


def _work(pipe: Connection, content: bytes, environment: Mapping[str, str]) -> None:
    """Reads shards until the other end of the pipe is closed, as it is by the end of that process.

    Args:
        pipe: to that process.
        content: the reader.
        environment: of that process now; the one that this was forked of began earlier.
    """
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the process that began this one, and so this one
    threading.excepthook = _end
    print_log()
    try:
        reader: Reader = unpacked(content)
    except AskanceError as error:
        pipe.send(error)
        return
    pipe.send(None)

    def read(number: int) -> None:
        receipt = reader(number)
        with suppress(OSError):
            pipe.send(receipt)

    with suppress(EOFError, OSError):
        while True:
            Thread(target=read, args=(pipe.recv(),), name="askance-shards", daemon=True).start()
    os._exit(0)  # without waiting for a shard that nobody wants


def _end(error: threading.ExceptHookArgs) -> None:
    """Ends the process for a bug, so that nobody waits for the shard."""
    threading.__excepthook__(error)
    os._exit(1)


class _CoordinatorSocket:
    """A socket of this user's at which workers of this machine ask a coordinator."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._folder = tempfile.TemporaryDirectory(prefix="askance-")
        self._secret = token_bytes(32)
        self._listener = Listener(str(Path(self._folder.name) / "socket"), authkey=self._secret)
        self._closed = False

    @property
    def ask(self) -> _SocketAsk:
        return _SocketAsk(str(self._listener.address), self._secret)

    def __enter__(self) -> _CoordinatorSocket:
        Thread(target=self._accept, name="askance-coordinator", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        with suppress(OSError, EOFError):  # wakes the thread that accepts
            Client(self._listener.address, authkey=self._secret).close()
        self._listener.close()
        self._folder.cleanup()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection = self._listener.accept()
            except multiprocessing.AuthenticationError:
                continue
            except (EOFError, OSError):
                return
            Thread(target=self._serve, args=(connection,), name="askance-coordinator", daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with connection, suppress(EOFError, OSError):
            while True:
                words, named = connection.recv()
                connection.send(self._coordinator.call(*words, **named))


class _SocketAsk:
    """Asks a coordinator in another process of this machine; see `Ask`."""

    def __init__(self, address: str, secret: bytes) -> None:
        self._address = address
        self._secret = secret
        self._lock = Lock()
        self._connection: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _SocketAsk, (self._address, self._secret)

    def __call__(self, *words: Any, **named: Any) -> Any:
        with self._lock:
            try:
                self._connection = self._connection or Client(self._address, authkey=self._secret)
                self._connection.send((words, named))
                return self._connection.recv()
            except (EOFError, OSError):  # the process that began this one has ended
                os._exit(1)
