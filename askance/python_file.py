"""A Python file for a task or a backend of one's own.

One that the user names is run, as any Python that one starts; one that only a file names, with the user's consent to
exactly these bytes.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from typing_extensions import override

from askance.errors import UsageError, boundary
from askance.registry import near_file
from askance.trust import Consent

SUFFIX = ".py"


def is_python(place: str) -> bool:
    """Whether `place` reads `FILE.py:NAME`."""
    file, colon, name = place.rpartition(":")
    return bool(colon) and file.lower().endswith(SUFFIX) and name.isidentifier()


_MODULES = "askance_file_"
"""What the names of modules begin with that are files."""


def files_named_in(pickled: bytes) -> list[Path]:
    """The loaded files that a pickle of this process names, by their absolute paths; who reads it loads them first."""
    modules = [module for name, module in sys.modules.items() if name.startswith(_MODULES) and name.encode() in pickled]
    return [Path(str(module.__file__)).resolve() for module in modules]


def load_file(path: Path, *, named_by: str = "") -> ModuleType:
    """The file as a module.

    Args:
        path: the file.
        named_by: what names it, such as `the run 'runs/a'`; empty where the user does.

    Raises:
        UsageError: it is not there, or it cannot be run.
        ConfigError: the user does not agree to run what `named_by` names.
    """
    source = read_source(path)
    if named_by:
        consent = Consent.to_python(path, source, named_by=named_by)
        consent.ask()
        consent.require()
    name = f"{_MODULES}{sha256(str(path.resolve()).encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    loader = _SourceLoader(name, path, source)
    spec = spec_from_loader(name, loader)
    assert spec is not None  # a loader of a file makes one
    module = module_from_spec(spec)
    sys.modules[name] = module  # so that its classes and pickles find it

    def unloadable(words: str) -> UsageError:
        return UsageError(f"The file {str(path)!r} cannot be loaded: {words}.", hint="Mend it.")

    with boundary(unloadable, passes=UsageError):
        try:
            loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return module


def read_source(path: Path) -> bytes:
    """The content of the file.

    Raises:
        UsageError: it is not there, or it cannot be read.
    """
    if not path.is_file():
        raise UsageError(f"There is no file {str(path)!r}.", hint=f"{near_file(path)}Check the name of the file.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"The file {str(path)!r} cannot be read: {error.strerror}.", hint="Check its rights."
        ) from error


class _SourceLoader(SourceFileLoader):
    """Runs the source that was read, and never what lies compiled beside it, which may be other code."""

    def __init__(self, name: str, path: Path, source: bytes) -> None:
        super().__init__(name, str(path))
        self._source = source

    @override
    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._source, self.path)


def load_object(place: str) -> Any:
    """What `FILE.py:NAME` names: an object, or one made of a class without arguments.

    Raises:
        UsageError: `place` names no such thing, the file cannot be run or has nothing of this name, or the class wants
            arguments.
    """
    if not is_python(place):
        raise UsageError(f"{place!r} names nothing in a Python file.", hint="Write `FILE.py:NAME`.")
    file, _, name = place.rpartition(":")
    contents = vars(load_file(Path(file)))
    if name not in contents:
        names = ", ".join(key for key, value in contents.items() if isinstance(value, type) and key[0] != "_")
        raise UsageError(
            f"The file {file!r} has no {name!r}.", hint=f"It has {names}." if names else "Check the name behind `:`."
        )
    loaded = contents[name]
    if not isinstance(loaded, type):
        return loaded
    hint = f"Give {name!r} no arguments that must be given, or make one in the file and name that."
    with boundary(lambda words: UsageError(f"{place!r} cannot be made: {words}.", hint=hint), passes=()):
        return loaded()
