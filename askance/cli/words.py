"""The words of a command, read without the machinery that checks and converts any type, where they are plain."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from typer.core import TyperCommand
from typing_extensions import override


class PlainCommand(TyperCommand):
    """A command whose words are mostly plain: flags, texts, paths and names out of a list.

    Those are read here, since the other way loads pydantic, which takes as long as replaying fifty pictures. Any
    other word, and whatever is wrong, goes that other way, so that it is said in the same words.
    """

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        found = None if self.callback is None else read_plainly(self.params, inspect.unwrap(self.callback), args)
        if found is None:
            return super().parse_args(ctx, args)
        ctx.params.update(found)
        ctx.args = []
        return []


def read_plainly(params: Sequence[Any], function: Any, words: Sequence[str]) -> dict[str, Any] | None:
    """The values of `function`'s parameters, by name; None where a word is not plain or something is missing.

    Args:
        params: as the command declares them.
        function: gives the types and the defaults.
        words: what stands behind the command's name.
    """
    named = {param.name: param for param in params}
    if any(param.callback is not None or param.envvar is not None for param in params):
        return None
    flags, options = _spellings(params)
    given: dict[str, Any] = {}
    loose: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            loose.append(word)
        elif word in flags:
            parameter, given_value = flags[word]
            given[parameter] = given_value
        elif name in options:
            found = value if equals else next(rest, None)
            if found is None or (not equals and found.startswith("-")):
                return None
            given[options[name]] = found
        else:
            return None
    arguments = [param.name for param in params if param.param_type_name == "argument"]
    given.update(zip(arguments, loose, strict=False))
    if len(loose) < len(arguments) or (len(loose) > len(arguments) and named[arguments[-1]].nargs != -1):
        return None
    if arguments and named[arguments[-1]].nargs == -1:
        given[arguments[-1]] = loose[len(arguments) - 1 :]
    return _typed(given, named, function)


def _spellings(params: Sequence[Any]) -> tuple[Mapping[str, tuple[str, bool]], Mapping[str, str]]:
    """Flags with what they say, and options that take a value, as they are written."""
    flags: dict[str, tuple[str, bool]] = {}
    options: dict[str, str] = {}
    for param in params:
        if param.param_type_name == "argument" or not param.expose_value:
            continue
        if getattr(param, "is_flag", False):
            flags |= dict.fromkeys(param.opts, (param.name, True))
            flags |= dict.fromkeys(param.secondary_opts, (param.name, False))
        else:
            options |= {word: param.name for word in param.opts if word.startswith("--")}
    return flags, options


def _typed(given: Mapping[str, Any], named: Mapping[str, Any], function: Any) -> dict[str, Any] | None:
    """Every parameter's value: what is given, in its type, or the default."""
    hints = get_type_hints(function)
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in named:
            continue  # the context, which is no word of the command line
        if name not in given:
            if parameter.default is parameter.empty:
                return None
            found[name] = parameter.default
            continue
        kind = _kind(hints[name])
        value = given[name]
        if isinstance(value, (bool, list)) or kind is str:
            found[name] = value
        elif kind is Path and value:
            found[name] = Path(value)
        elif isinstance(kind, type) and issubclass(kind, Enum) and value in [member.value for member in kind]:
            found[name] = kind(value)
        else:
            return None
    return found


def _kind(hint: Any) -> Any:
    """The type that a hint allows besides None."""
    kinds = [each for each in get_args(hint) if each is not type(None)]
    return kinds[0] if get_origin(hint) is UnionType and len(kinds) == 1 else hint
