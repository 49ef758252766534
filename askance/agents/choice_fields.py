"""Which options the fields of a JSON reply choose: each holds numbers, letters or texts of options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from askance.agents.alternatives import Alternatives, alternatives_of
from askance.agents.reply_ladder import NoAnswer, as_lines, check_places, chosen_places, read_choice
from askance.agents.reply_value import PlainReply

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
    value = data.get(field)
    numbers: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    if numbers and all(type(number) is int for number in numbers):
        return check_places(numbers, count, single=single)  # all of them in order may be a ranking
    alternatives = alternatives_of(tuple(options)) if options else Alternatives(((),) * count)
    form = f"`{field}` must hold numbers of options, from 1 to {count}"
    return _read_field(value, alternatives, form, single=single)


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
    form = f"`{field}` must be the letter of an option, from A to {alternatives.sign(len(options))}"
    return _read_field(data.get(field), alternatives, form, single=single)


def _read_field(value: Any, alternatives: Alternatives, form: str, *, single: bool) -> tuple[int, ...]:
    texts = [as_lines(each) for each in (cast("list[Any]", value) if isinstance(value, list) else [value])]
    try:
        return read_values(texts, alternatives, single=single)
    except NoAnswer as error:
        raise NoAnswer(form) from error


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
    reply = PlainReply.of("\n".join(text.strip().removesuffix(":") for text in texts), alternatives, single=single)
    value = reply.value(0, apart=True)
    if value is not None and value.end == reply.end:
        return chosen_places(value, reply, otherwise)
    if len(texts) == 1:
        return read_choice(texts[0], alternatives, single=single, otherwise=otherwise, is_field=True).value
    read = (read_choice(text, alternatives, single=True, is_field=True).value for text in texts)
    places = dict.fromkeys(place for numbers in read for place in numbers)
    if not places:
        raise NoAnswer("it is empty")
    return check_places([*places], len(alternatives.names), single=single)
