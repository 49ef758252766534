"""The page around everything: one file whose own style and script are all that a browser may run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template
from typing import Any

from askance.evals.report.markup import Markup, data_block, joined, text

_SCRIPTS = ("dom.js", "sample.js", "blame.js", "pair.js", "browse.js", "start.js")

_POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; img-src {images}; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


def document(
    *,
    title: str,
    what: str,
    count: int | None,
    content: Markup,
    data: Markup,
    beside: bool = False,
    many: str = "Samples",
) -> str:
    """The whole page.

    Args:
        title: of what it is about.
        what: kind of page, behind the name at its top.
        count: samples; None is of a page that has none.
        content: the still part.
        data: blocks of JSON for the script.
        many: what the samples are called.
        beside: whether pictures lie in files beside the page.
    """
    style, script = _file("page.css"), _script()
    policy = _POLICY.format(
        script=_hash(script), style=_hash(style), images="data: 'self' file:" if beside else "data:"
    )
    return Template(_file("page.html")).substitute(
        policy=policy,
        title=text(title),
        what=text(what),
        count="" if count is None else f"{count:,}",
        alone=" hidden" if count is None else "",
        many=text(many),
        style=style,
        content=content,
        data=data,
        script=script,
    )


def blocks(name: str, several: Sequence[Any], *, size: int) -> Iterator[Markup]:
    """`several` as blocks of JSON of so many each, `NAME-0`, `NAME-1`, …, each of which is read when it is needed."""
    for number in range(0, len(several), size):
        yield data_block(f"{name}-{number // size}", several[number : number + size])


@cache
def _script() -> str:
    code = joined(Markup(f"{_file(name)}\n") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{code}}})();\n'


def _hash(content: str) -> str:
    """How a policy names content that may run: by its digest."""
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode('ascii')}'"


@cache
def _file(name: str) -> str:
    return (files("askance.evals.report") / name).read_text(encoding="utf-8")
