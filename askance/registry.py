"""What goes by a name: what is built in, and what installed packages bring by entry points of a group.

A built-in name is looked up in no package, and what is named is imported alone.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

from askance.errors import AskanceError, UsageError, boundary

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from pathlib import Path

_log = logging.getLogger("askance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """Things of one sort, by name."""

    group: str
    """Of the entry points by which packages bring theirs: the name of one is the name of what it brings."""
    what: str
    """What one of them is called in messages."""
    built_in: Mapping[str, str] = field(default_factory=dict[str, str])
    """By name, in the order in which they are listed: `module:name`."""
    error: type[AskanceError] = UsageError
    """What is raised about them."""

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or name in self._plug_ins()

    def names(self) -> list[str]:
        """All names: those that are built in, then those that packages bring. Nothing is imported."""
        return [*self.built_in, *self._plug_ins()]

    def modules(self, name: str) -> list[str]:
        """The modules that are imported for a name: several where several packages bring it, none where none does."""
        if name in self.built_in:
            return [self.built_in[name].partition(":")[0]]
        return [entry.module for entry in self._plug_ins().get(name, ())]

    def load(self, name: str) -> Any:
        """What goes by a name; imports its module.

        Raises:
            KeyError: nothing goes by this name.
            AskanceError: several packages bring one, or the package that does cannot be imported.
        """
        if name in self.built_in:
            return import_object(self.built_in[name])
        entry, *others = self._plug_ins()[name]
        if others:
            all_ = " and ".join(f"{_package(each)!r} ({each.value})" for each in (entry, *others))
            raise self.error(f"Several packages bring a {self.what} {name!r}: {all_}.", hint="Uninstall all but one.")

        def unloadable(words: str) -> AskanceError:
            return self.error(
                f"The {self.what} {name!r} of the package {_package(entry)!r} cannot be loaded from {entry.value!r}: "
                f"{words}.",
                hint="Mend the package, or uninstall it.",
            )

        with boundary(unloadable, passes=()):
            return entry.load()

    def _plug_ins(self) -> Mapping[str, tuple[EntryPoint, ...]]:
        plug_ins = _plug_ins(self.group, tuple(sys.path))
        for name in plug_ins.keys() & self.built_in.keys():
            _warn_unused(self.what, name, _package(plug_ins[name][0]))
        return {name: entries for name, entries in plug_ins.items() if name not in self.built_in}


@cache
def _plug_ins(group: str, path: tuple[str, ...]) -> Mapping[str, tuple[EntryPoint, ...]]:  # noqa: ARG001  # looked through
    """By name, sorted: what installed packages bring to a group, each place once."""
    from importlib.metadata import entry_points  # not needed for what is built in

    entries_by_name: dict[str, dict[str, EntryPoint]] = {}
    for entry in entry_points(group=group):
        entries_by_name.setdefault(entry.name, {}).setdefault(entry.value, entry)
    return {name: tuple(entries_by_name[name].values()) for name in sorted(entries_by_name)}


@cache
def _warn_unused(what: str, name: str, package: str) -> None:
    """Says once that a package brings something under a name that is taken."""
    _log.warning("The %s %r of the package %r is never used: one that is built in has this name.", what, name, package)


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.module.partition(".")[0]


def import_object(reference: str) -> Any:
    """What `module:name` refers to; imports the module."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


_MOST_FILES = 5_000
"""Files of a folder that are looked at for a like name."""


def near(name: str, known: Iterable[str]) -> str:
    """A hint that names those of `known` that `name` may stand for; empty where there is none."""
    close = get_close_matches(name, sorted(known), n=3)
    return f"Nearest: {', '.join(map(repr, close))}. " if close else ""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names those of `known` that `name` may stand for, or all of them."""
    names = sorted(known)
    return near(name, names) or (f"Known: {', '.join(map(repr, names))}. " if names else "")


def near_file(path: Path) -> str:
    """A hint that names what lies beside a missing file under a like name; empty where nothing does."""
    beside = path.parent
    names: list[Path] = []
    with suppress(OSError):  # the folder is not there, or may not be listed
        names += islice(beside.iterdir(), _MOST_FILES)
    stems = get_close_matches(path.stem, {each.stem for each in names}, n=3, cutoff=0.75)
    close = sorted(each for each in names if each.stem in stems)[:3]
    return f"Nearest: {', '.join(repr(str(each)) for each in close)}. " if close else ""
