"""The grammar of specs: where settings begin, and how they are read."""

from __future__ import annotations

import re
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import ConfigError
from askance.spec_grammar import count, one_of, read_settings, split_settings, yes_or_no

SPLIT = {
    "clip:models/a": ("clip:models/a", ()),
    "clip:models/a?scale=logits&batch=4": ("clip:models/a", (("scale", "logits"), ("batch", "4"))),
    "st:a?pooling=cls+mean&prompt=a%20b": ("st:a", (("pooling", "cls+mean"), ("prompt", "a b"))),
    "st:a?prompt=": ("st:a", (("prompt", ""),)),
    "openai:what?": ("openai:what?", ()),
    "openai:who?is it": ("openai:who?is it", ()),
    "openai:who?seed=1?2": ("openai:who", (("seed", "1?2"),)),
    "openai:m@http://h/v1?api-version=1": ("openai:m@http://h/v1?api-version=1", ()),
}


@pytest.mark.parametrize(("spec", "parts"), SPLIT.items(), ids=SPLIT)
def test_settings_begin_where_one_is_named(spec: str, parts: tuple[str, object]) -> None:
    assert split_settings(spec) == parts


@given(st.dictionaries(st.from_regex(r"\A[a-z_]{1,8}\Z"), st.text(), min_size=1))
def test_settings_are_read_back_as_written(settings: dict[str, str]) -> None:
    assert split_settings("a:b?" + urlencode(settings, quote_via=quote, errors="surrogatepass")) == (
        "a:b",
        (*settings.items(),),
    )


READERS = {"batch": count, "scale": one_of("cosine", "logits"), "pickled": yes_or_no}

WRONG = {
    "unknown": ("batc", "1", "'a:b' has no setting 'batc'. Nearest: 'batch'. There are: batch, pickled, scale."),
    "like none": ("zzz", "1", "'a:b' has no setting 'zzz'. There are: batch, pickled, scale."),
    "no number": ("batch", "0", "The setting 'batch' of 'a:b' cannot be '0'. It takes: a number from 1 up."),
    "no choice": ("scale", "x", "The setting 'scale' of 'a:b' cannot be 'x'. It takes: choose one of cosine, logits."),
}


@pytest.mark.parametrize(("name", "text", "message"), WRONG.values(), ids=WRONG)
def test_a_setting_that_there_is_not_is_named(name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{re.escape(message)}$"):
        read_settings([("pickled", "true"), (name, text)], READERS, of="a:b")


def test_settings_have_values_of_their_types() -> None:
    said = [("batch", "4"), ("scale", "logits"), ("pickled", "false")]

    assert read_settings(said, READERS, of="a:b") == {"batch": 4, "scale": "logits", "pickled": False}
