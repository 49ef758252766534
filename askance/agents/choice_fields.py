"""Which options the fields of a JSON reply choose: each holds numbers, letters or texts of options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from askance.agents.alternatives import Alternatives, alternatives_of
from askance.agents.reply_ladder import NoAnswer, as_lines, check_places, chosen_places, read_choice
from askance.agents.reply_value import PlainReply
from askance.nodes import Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def read_numbers(
    data: Mapping[str, Any], field: str, count: int, *, single: bool = False, options: Sequence[str] = ()
) -> tuple[int, ...]:
    """The chosen numbers in field `field` of a JSON reply, from 1 to `count`; a number may stand in a text (`"3"`).

    Args:
        data: the reply.
        field: which field of it holds the answer.
        count: how many options there are.
        single: whether exactly one number was asked for.
        options: the options as they were shown, where the field may repeat them.

    Raises:
        Unreadable: as `read_choice`.
    """
    numbers = _listed(data, field)
    if not numbers:
        raise Unreadable(f"`{field}` is empty; choose at least one option")
    if all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        return check_places(numbers, count, single=single)
    alternatives = alternatives_of(tuple(options)) if options else Alternatives(((),) * count)
    try:
        return read_values([*map(as_lines, numbers)], alternatives, single=single)
    except NoAnswer as error:
        raise NoAnswer(f"`{field}` must hold numbers of options, from 1 to {count}") from error


def read_letters(
    data: Mapping[str, Any], field: str, options: Sequence[str], *, single: bool = False
) -> tuple[int, ...]:
    """The numbers of the options that field `field` of a JSON reply names by letter or text, from 1.

    Args:
        data: the reply.
        field: which field of it holds the answer: a text, or a list of texts.
        options: the options, which the prompt put letters before.
        single: whether exactly one was asked for.

    Raises:
        Unreadable: as `read_choice`.
    """
    alternatives = alternatives_of(tuple(options), lettered=True)
    said = [item.strip().removesuffix(":") for item in _listed(data, field) if isinstance(item, str)]
    try:
        return read_values(said, alternatives, single=single)
    except NoAnswer as error:
        last = alternatives.sign(len(options))
        raise NoAnswer(f"`{field}` must be the letter of an option, from A to {last}") from error


def _listed(data: Mapping[str, Any], field: str) -> list[Any]:
    found: Any = data.get(field)
    return found if isinstance(found, list) else [found]  # pyright: ignore[reportUnknownVariableType]


def read_values(
    texts: Sequence[str], alternatives: Alternatives, *, single: bool = False, otherwise: int | None = None
) -> tuple[int, ...]:
    """The places of the alternatives that texts name that stand where the answer belongs, such as a field of JSON.

    Args:
        texts: one for each answer, or one for all of them.
        alternatives: what they may choose from.
        single: whether exactly one is asked for.
        otherwise: the place that is chosen where every other one is denied.

    Raises:
        Unreadable: one of the texts holds anything else.
    """
    if not any(map(str.strip, texts)):
        raise NoAnswer("it is empty")
    value = PlainReply.of("\n".join(texts), alternatives).alone()
    if value is not None:
        places = chosen_places(value, alternatives, otherwise)
    elif len(texts) == 1:
        places = read_choice(texts[0], alternatives, single=single, otherwise=otherwise).value
    else:
        places = [place for text in texts for place in read_choice(text, alternatives, single=True).value]
    return check_places(places, len(alternatives.names), single=single)
