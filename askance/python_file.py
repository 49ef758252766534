"""A Python file that the user names, for a task or a backend of one's own: it is run, as any Python that one starts."""

from __future__ import annotations

import sys
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from askance.errors import UsageError

SUFFIX = ".py"


def is_python(place: str) -> bool:
    """Whether `place` reads `FILE.py:NAME`."""
    file, colon, name = place.rpartition(":")
    return bool(colon) and file.lower().endswith(SUFFIX) and name.isidentifier()


def load_file(path: Path) -> ModuleType:
    """The file as a module.

    Raises:
        UsageError: it is not there, or it cannot be run.
    """
    if not path.is_file():
        raise UsageError(f"There is no file {str(path)!r}.", hint="Check the name of the file.")
    name = f"askance_file_{sha256(str(path.resolve()).encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"The file {str(path)!r} cannot be loaded as Python.", hint="Give the file the ending `.py`.")
    module = module_from_spec(spec)
    sys.modules[name] = module  # so that its classes and pickles find it
    try:
        spec.loader.exec_module(module)
    except UsageError:
        raise
    except Exception as error:
        del sys.modules[name]
        raise UsageError(
            f"The file {str(path)!r} cannot be loaded: {type(error).__name__}: {error}.", hint="Mend it."
        ) from error
    return module


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
    found = contents[name]
    if not isinstance(found, type):
        return found
    try:
        return found()
    except Exception as error:
        raise UsageError(
            f"{place!r} cannot be made: {type(error).__name__}: {error}.",
            hint=f"Give {name!r} no arguments that must be given, or make one in the file and name that.",
        ) from error
