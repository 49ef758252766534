"""Frozen values that are made by the thousand: open while their fields are set, and frozen from then on."""

from __future__ import annotations

from dataclasses import MISSING, Field, field, fields, make_dataclass
from typing import Any, TypeVar, cast

T = TypeVar("T")


def quickly(kind: type[T]) -> type[T]:
    """`kind` to call: it takes the same arguments and gives the same frozen value, in half the time.

    A frozen dataclass sets each of its fields through `object.__setattr__`, which takes four times as long as an
    assignment. Here the fields are assigned to an object of an open twin of the class, which then takes its place in
    the class: to whoever gets it the value was never anything else. It pays from four fields on.

    Args:
        kind: a frozen dataclass with slots, without `__post_init__`, whose bases have no fields.

    Raises:
        TypeError: it has a `__post_init__`, which would not be run.
    """
    if hasattr(kind, "__post_init__"):
        msg = f"{kind.__name__} checks its values once they are set; make it as it is."
        raise TypeError(msg)

    def freeze(value: Any) -> None:
        value.__class__ = kind

    twin: Any = make_dataclass(
        kind.__name__,
        [(each.name, each.type, _like(each)) for each in fields(cast("Any", kind))],
        bases=vars(kind).get("__orig_bases__", kind.__bases__),
        namespace={"__doc__": kind.__doc__, "__post_init__": freeze},
        slots=True,
        eq=False,
        repr=False,
    )
    return twin


def _like(each: Field[Any]) -> Any:
    """A field that is set as `each` is."""
    known: dict[str, Any] = {"init": each.init, "kw_only": each.kw_only, "default": each.default}
    if each.default_factory is not MISSING:
        known["default_factory"] = each.default_factory
    return field(**known)
