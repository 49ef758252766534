"""Pages as files: templates rendered with what strangers wrote as text, data for the script, and the file on the disk.

A page is one file whose own style and script are all that a browser may run. Jinja escapes whatever a template shows,
in elements and in attributes alike. Line ends and indentation of the templates are for their readers: they are taken
out, so that nothing stands between two elements of a page that nobody put there.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlencode
from zlib import compress

from askance.amounts import many, shortened
from askance.errors import UsageError
from askance.evals.run_folder import replacing, writing_to
from askance.evals.tables import shown_value
from askance.terminal import printable

if TYPE_CHECKING:
    from jinja2 import Environment

_SCRIPTS = (
    "dom.js", "file.js", "figure.js", "sample.js", "steps.js", "blame.js", "pair.js", "notes.js", "grid.js",
    "browse.js", "start.js",
)  # fmt: skip

_POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; img-src {images}; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)

_RISKY = re.compile(
    "[<>&\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Characters that are escaped in a block of JSON: those that could end it, cannot be written, or reorder text."""


# --- templates ---


def render(template: str, **values: Any) -> str:
    """A template with its values; every text among them is text on the page, and nothing else.

    Args:
        template: file name in the folder `templates`.
        values: what it shows; a name that it does not know is an error.
    """
    return environment().get_template(template).render(values)


@cache
def environment() -> Environment:
    """What renders templates: strict about names, and every value is text, in elements and in attributes alike."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    jinja = Environment(loader=FunctionLoader(_template), autoescape=True, undefined=StrictUndefined, finalize=_shown)
    jinja.filters.update(_FILTERS)
    return jinja


def _plain(value: object) -> str:
    return printable(str(value))


def _value(value: float | None, percent: bool) -> str:  # noqa: FBT001  # a filter takes it by its place
    return shown_value(value, percent=percent)


def address(parts: Mapping[str, str | int]) -> str:
    """The address of a place on the page, as its script writes it: `sample`, `epoch`, `run`, `blame`."""
    usual = {"epoch": 0, "run": 0}
    differing = {name: value for name, value in parts.items() if usual.get(name) != value}
    return f"#{urlencode(differing, quote_via=quote, errors='replace')}"


_FILTERS: Mapping[str, Callable[..., Any]] = {
    "address": address,
    "cut": shortened,
    "grouped": "{:,}".format,
    "many": many,
    "plain": _plain,
    "value": _value,
}


def _template(name: str) -> str:
    """A template without line ends and indentation: beside tags they are nothing, within text a blank."""
    return re.sub(r"\n\s*", " ", re.sub(r"(?<=[>}])\n\s*|\n\s*(?=[<{])|\n\s*$", "", _file("templates", name)))


def _shown(value: Any) -> Any:
    """A value as a template shows it: characters that nobody would see are written out and marked.

    In an attribute, which holds no elements, `plain` writes them out before.
    """
    if not isinstance(value, str) or hasattr(value, "__html__") or printable(value) == value:
        return value
    return _Marked(value)


class _Marked:
    """A text with characters that nobody would see."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __html__(self) -> str:
        """What takes the place of an escape."""
        return "".join(
            escape(each) if printable(each) == each else f"<span class=unseen>U+{ord(each):04X}</span>"
            for each in self._text  # with no quotes of its own, so that it would end no attribute either
        )


# --- the page ---


@dataclass(frozen=True, slots=True, kw_only=True)
class DataBlock:
    """A block of data for the page's script."""

    id: str
    text: str
    """Without characters that have a meaning in HTML."""
    type: str = "application/json"


def block(identity: str, value: Any) -> DataBlock:
    """`value` as data that the script reads at once."""
    return DataBlock(id=identity, text=safe_json(value))


def packed_block(identity: str, value: Any) -> DataBlock:
    """`value` as data that the script unpacks when somebody looks: JSON, compressed by `zlib`, in Base64."""
    packed = compress(safe_json(value).encode("utf-8"))
    return DataBlock(id=identity, text=b64encode(packed).decode("ascii"), type="application/zlib")


def document(
    template: str,
    *,
    title: str,
    blocks: Iterable[DataBlock],
    count: int | None = None,
    beside: bool = False,
    **values: Any,
) -> str:
    """The whole page.

    Args:
        template: of its still part.
        title: of what it is about.
        blocks: for the script.
        count: samples; None is of a page that has none.
        beside: whether pictures lie in files beside the page.
        values: what the still part shows.
    """
    return self_contained_page(
        template,
        style="page.css",
        scripts=_SCRIPTS,
        beside=beside,
        title=title,
        blocks=blocks,
        count=count,
        **values,
    )


def self_contained_page(
    template: str, *, style: str, scripts: Sequence[str], beside: bool = False, **values: Any
) -> str:
    """A page whose own style and script are all that a browser may run.

    Args:
        template: of the page; besides `values` it shows `policy`, `style` and `script`.
        style: file name in the folder `assets`.
        scripts: file names there, which make up one script.
        beside: whether pictures lie in files beside the page.
        values: what else the page shows.
    """
    css, code = _file("assets", style), _script(*scripts)
    images = "data: 'self' file:" if beside else "data:"
    policy = _POLICY.format(script=_hash(code), style=_hash(css), images=images)
    return render(template, policy=policy, style=css, script=code, **values)


@cache
def _script(*names: str) -> str:
    code = "".join(f"{_file('assets', name)}\n" for name in names)
    return f'(() => {{\n"use strict";\n{code}}})();\n'


def _hash(content: str) -> str:
    """How a policy names content that may run: by its digest."""
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode('ascii')}'"


def jpeg_uri(data: bytes) -> str:
    """A JPEG file as a data URI."""
    return f"data:image/jpeg;base64,{b64encode(data).decode('ascii')}"


@cache
def _file(folder: str, name: str) -> str:
    return (files("askance.evals.report") / folder / name).read_text(encoding="utf-8")


def safe_json(value: Any) -> str:
    """JSON text without characters that have a meaning in HTML, or that UTF-8 cannot write."""
    try:
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:  # a score is NaN or infinite
        written = json.dumps(_of_numbers(value), ensure_ascii=False, separators=(",", ":"))
    return _RISKY.sub(lambda match: f"\\u{ord(match.group()):04x}", written)


def _of_numbers(value: Any) -> Any:
    """`value` with null for NaN and infinite numbers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _of_numbers(each) for name, each in cast("dict[str, Any]", value).items()}
    return [_of_numbers(each) for each in cast("list[Any]", value)] if isinstance(value, (list, tuple)) else value


# --- the file ---

Make = Callable[[Sequence[str] | None], str]
"""Makes the page from the addresses of the pictures beside it; None if there are none."""


def write_page(out: Path, make: Make, *, beside: Mapping[str, bytes] | None = None) -> int:
    """Writes a page; an existing one is replaced.

    Args:
        out: the file.
        make: makes the page.
        beside: JPEG files by the digest of their pictures, which go into the folder `NAME_files` beside the page; None
            where the page itself holds its pictures.

    Returns:
        The size of the page in bytes.

    Raises:
        UsageError: `out` is a folder.
        StoreError: it cannot be written; a page that was there stays.
    """
    if out.is_dir():
        raise UsageError(f"{str(out)!r} is a folder, and the page is one file.", hint="Name a file: -o report.html")
    with writing_to(out, hint="Make room on the disk, or name another place: `-o FILE`, `--html FILE`."):
        out.parent.mkdir(parents=True, exist_ok=True)
        folder = out.with_name(f"{out.stem}_files")
        names = {} if beside is None else {digest: f"{digest[:32]}.jpg" for digest in beside}
        page = make(None if beside is None else [f"{quote(folder.name)}/{name}" for name in names.values()])
        with replacing(out) as part:
            size = part.write_bytes(page.encode("utf-8", "backslashreplace"))
            if beside is not None:
                folder.mkdir(exist_ok=True)
                for digest, data in beside.items():
                    (folder / names[digest]).write_bytes(data)
    return size
