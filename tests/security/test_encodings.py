"""A key that an endpoint repeats in other letters reaches no file and no message: it is looked for after decoding."""

from __future__ import annotations

import html
import json
import logging
import re
import string
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from traceback import TracebackException
from typing import Any
from urllib.parse import quote, unquote_to_bytes
from zipfile import is_zipfile

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from askance.chat import Message, TextPart
from askance.cli import main
from askance.errors import CallError
from askance.models import Engine, RetryPolicy, get_model, run_sync
from askance.models.secrets import Secrets
from askance.replay import MemoryStore
from tests.batch_client import QUICK
from tests.batch_server import BatchServer
from tests.security.commands import HEADER, KEY, SECRETS, SETTINGS, Project
from tests.servers import FakeEndpoint, Reply, Seen, chat_body, default_text

MARK = "§place§"
"""Where an endpoint of these tests puts what it repeats."""


def each(form: Callable[[int], str]) -> Callable[[str], str]:
    return lambda key: "".join(form(ord(mark)) for mark in key)


def partly(form: Callable[[int], str], *, first: int = 0) -> Callable[[str], str]:
    """Every third character in another form."""
    return lambda key: "".join(form(ord(c)) if n % 3 == first else json.dumps(c)[1:-1] for n, c in enumerate(key))


def in_base64(before: int, encode: Callable[[bytes], bytes] = b64encode) -> Callable[[str], str]:
    return lambda key: encode(b"x" * before + key.encode() + b" and more").decode()


ENCODINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda key: json.dumps(key)[1:-1],
    "escaped": each("\\u{:04x}".format),
    "escaped in capitals": each("\\u{:04X}".format),
    "escaped in part": partly("\\u{:04x}".format),
    "escaped in another part": partly("\\u{:04x}".format, first=2),
    "escaped twice": each("\\\\u{:04x}".format),
    "escaped twice in part": partly("\\\\u{:04x}".format),
    "escaped four times": each("\\\\\\\\u{:04x}".format),
    "the escape escaped": each("\\u005cu{:04x}".format),
    "slashes escaped": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "as bytes": each("\\\\x{:02x}".format),
    "in braces": each("\\\\u{{{:x}}}".format),
    "percent": each("%{:02X}".format),
    "percent in small letters": each("%{:02x}".format),
    "percent in part": partly("%{:02x}".format),
    "percent as addresses have it": lambda key: quote(key, safe=""),
    "percent twice": each("%25{:02x}".format),
    "entities": each("&#{};".format),
    "entities with zeros": each("&#{:07};".format),
    "hexadecimal entities": each("&#x{:x};".format),
    "hexadecimal entities in part": partly("&#X{:04X};".format),
    "entities by name": lambda key: json.dumps(html.escape(key))[1:-1],
    "entities, escaped": each("\\u0026#{};".format),
    "entities, twice": each("&amp;#{};".format),
    "entities, percent": each("%26%23{}%3B".format),
    "base64": in_base64(0),
    "base64, one byte on": in_base64(1),
    "base64, two bytes on": in_base64(2),
    "base64 for addresses": in_base64(0, urlsafe_b64encode),
    "base64 for addresses, one byte on": in_base64(1, urlsafe_b64encode),
    "base64, escaped": lambda key: each("\\u{:04x}".format)(in_base64(2)(key)),
    "base64, slashes escaped": lambda key: in_base64(1)(key).replace("/", "\\/"),
    "base64, percent": lambda key: quote(in_base64(0)(key), safe=""),
    "UTF-16 within": each("{0:c}\\u0000".format),
    "UTF-32 within": each("\\u0000\\u0000\\u0000\\u{:04x}".format),
}
"""By name, what stands for a key within a JSON text. Of a character that means something there, the first three are."""

CHARSETS = ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
"""Of a whole reply; without a byte order in the name it begins with a mark that says it."""

SAFE = "".join(mark for mark in map(chr, range(33, 127)) if mark not in '"\\%&')
KEYS = st.text(SAFE, min_size=10, max_size=70).filter(lambda key: len({*key}) > 6 and any(map(str.isdigit, key)))
"""No word, such as `JSONDecode`, that a message of ours holds as well."""
ODD = st.text(string.printable.strip() + "éß€😀", min_size=10, max_size=40).filter(lambda key: len({*key}) > 6)


ESCAPE = re.compile(r"\\u\{([0-9a-fA-F]{1,6})\}|\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|\\([/\\\"])")


def undone(data: bytes) -> Iterator[bytes]:
    """`data`, and what it is after one decoding after the other; written from the standard library alone."""
    yield data
    for _ in range(5):
        text = data.decode("latin-1").replace("\0", "")
        text = ESCAPE.sub(lambda m: m[4] or chr(min(255, int(m[1] or m[2] or m[3], 16))), text)
        then = unquote_to_bytes(html.unescape(text).encode("latin-1", "replace"))
        if then == data:
            return
        yield (data := then)


def holds(data: bytes, key: str) -> bool:
    """Whether `key` stands in `data`, in any encoding."""
    secret = key.encode()
    for text in undone(data):
        if secret in text:
            return True
        if secret in b"".join(b64decode(run) for run in re.findall(rb"(?:[A-Za-z0-9+/]{4})+", text)):
            return True
        if any(secret in b64decode(run, b"-_") for run in re.findall(rb"(?:[A-Za-z0-9_-]{4})+", text)):
            return True
    return False


# ---- blanking ----------------------------------------------------------------------------------------------------


@given(KEYS, st.sampled_from([*ENCODINGS]), st.sampled_from(CHARSETS))
def test_a_key_is_blanked_in_every_encoding_and_nothing_else_is(key: str, encoding: str, charset: str) -> None:
    said = {"choices": [{"text": f'It\'s "odd" – 100 % & more: {MARK} \\ end\n', "n": 1}]}
    text = json.dumps(said, ensure_ascii=False).replace(MARK, ENCODINGS[encoding](key))
    assume(holds(text.encode(), key))  # a key that itself looks like an escape may be none
    blanked = Secrets([key]).blanked(text.encode(charset))

    assert not holds(blanked.decode(charset).encode(), key)
    left = json.loads(blanked)["choices"][0]["text"]
    assert left.startswith('It\'s "odd" – 100 % & more: ')
    assert left.endswith(" \\ end\n")
    assert "[key]" in left


@given(ODD, st.sampled_from(["escaped", "percent", "entities", "as it is"]), st.sampled_from(CHARSETS))
@example("000012😀%34", "as it is", "utf-8")
def test_a_key_of_any_letters_is_blanked(key: str, encoding: str, charset: str) -> None:
    forms = {
        "escaped": "".join(f"\\u{half:04x}" for half in memoryview(key.encode("utf-16-le")).cast("H")),
        "percent": "".join(f"%{byte:02x}" for byte in key.encode()),
    }
    said = forms.get(encoding) or ENCODINGS[encoding](key)
    blanked = Secrets([key]).blanked(f'{{"text": "so: {said}."}}'.encode(charset))

    assert not holds(blanked.decode(charset).encode(), key)
    assert json.loads(blanked)["text"] == "so: [key]."


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")), st.sampled_from(CHARSETS))
def test_what_holds_no_key_stays_as_it_is(text: str, charset: str) -> None:
    data = json.dumps({"text": text, "more": f"%41 &amp; \\u0041 {text}"}).encode(charset)

    assert Secrets([KEY]).blanked(data) == data
    assert Secrets([KEY]).cleared(text) == text


@given(KEYS, st.sampled_from([*ENCODINGS]), st.sampled_from(CHARSETS), st.integers(97, 999))
async def test_a_stream_is_blanked_wherever_it_is_cut(key: str, encoding: str, charset: str, size: int) -> None:
    text = json.dumps({"text": f"so: {MARK}, and {MARK}"}).replace(json.dumps(MARK)[1:-1], ENCODINGS[encoding](key))
    data, secrets = f"{text}\n".encode(charset), Secrets([key])

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(data), size):
            yield data[start : start + size]

    assert b"".join([piece async for piece in secrets.stream(chunks())]) == secrets.blanked(data)


@pytest.mark.parametrize("encoding", ["as it is", "escaped", "entities with zeros", "base64"])
def test_a_key_is_found_wherever_a_large_reply_is_decoded_in_parts(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("askance.models.secrets.WINDOW", 5000)
    said = ENCODINGS[encoding](KEY)
    for before in (0, 4990, 4999, 9990, 14_000):
        blanked = Secrets([KEY]).blanked(b"." * before + said.encode() + b"." * 6000)
        assert blanked.startswith(b"." * before)
        assert not holds(blanked, KEY)
        assert len(blanked) < before + 6100


def test_what_is_all_escapes_is_blanked_in_bounded_time() -> None:
    """As a hostile endpoint may send it; a second and a half here, on a machine that does other things."""
    data = b"\\u0073" * 2_000_000 + each("\\u{:04x}".format)(KEY).encode()
    assert Secrets([KEY]).blanked(data).endswith(b"[key]")
    assert len(Secrets([KEY]).blanked(data)) < len(data)


# ---- what is left of a call --------------------------------------------------------------------------------------

JsonObject = dict[str, Any]


def chatty(said: str, seen: JsonObject, charset: str = "utf-8") -> Reply:
    """Answers as wanted, and repeats `said` wherever a word may stand; the probe alone finds the texts sober."""
    text = default_text(seen)
    body = chat_body(text if "quokka-17" in text else text.replace("cup", MARK), reasoning_content=MARK)
    data = json.dumps({**body, "system_fingerprint": MARK})
    return Reply(body=data.replace(json.dumps(MARK)[1:-1], said).encode(charset))


def complaint(said: str, charset: str = "utf-8", status: int = 400) -> Reply:
    text = json.dumps({"error": {"message": f"No: {MARK}", "type": MARK, "param": MARK, "code": MARK}})
    return Reply(status=status, body=text.replace(json.dumps(MARK)[1:-1], said).encode(charset))


def head(said: str, status: int) -> Reply:
    return Reply(status=status, headers={"x-request-id": said, "location": f"http://{said}"}, phrase=said, body=said)


REPLIES: dict[str, Callable[[Seen, str, str], Reply]] = {
    "answer": lambda seen, said, charset: chatty(said, seen.json, charset),
    "rejected": lambda seen, said, charset: complaint(said, charset),
    "wrong key": lambda seen, said, charset: complaint(said, charset, 401),
    "error in a reply": lambda seen, said, charset: Reply(body=complaint(said, charset).body),
    "no JSON": lambda seen, said, charset: Reply(body=f"<p>{said}".encode(charset)),
    "broken": lambda seen, said, charset: Reply(status=500, body=f"Traceback: {said}".encode(charset)),
    "in the head": lambda seen, said, charset: head(said, 400),
    "in the head of an answer": lambda seen, said, charset: head(said, 200),
    "sent on": lambda seen, said, charset: head(said, 302),
}


@given(
    key=KEYS,
    encoding=st.sampled_from([*ENCODINGS]),
    charset=st.sampled_from(CHARSETS),
    reply=st.sampled_from([*REPLIES]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_answer_and_no_error_holds_a_key_in_any_encoding(
    key: str, encoding: str, charset: str, reply: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG, "askance")
    monkeypatch.setenv("MARKED_KEY", key)
    said = ENCODINGS[encoding](key)
    records = MemoryStore()
    with FakeEndpoint(lambda seen: REPLIES[reply](seen, said, charset)) as endpoint:
        engine = Engine(records=records, policy=RetryPolicy(tries=1))
        model = get_model(f"openai:fake-model@{endpoint.url}", engine=engine, key_variable="MARKED_KEY")
        left: list[object] = []
        try:
            left.append(run_sync(model.generate(model.request([Message("user", (TextPart("Look."),))]))))
        except CallError as error:
            left += ["".join(TracebackException.from_exception(error).format()), str(error), vars(error)]
        assert endpoint.requests
        run_sync(model.aclose())

    left += [record.response for record in records]
    assert not holds("\n".join((caplog.text, *map(str, left))).encode(), key)


ALL = " ".join(form(KEY) + " " + form(HEADER) for form in ENCODINGS.values())
"""Both secrets, in every encoding at once."""

TASK = """\
name: posters
summary: Which claim a poster argues for.
data: samples.jsonl
chain: end-to-end
choose: single
score: choice
options: [I should drink tea., I should buy bricks.]
"""

WAYS = {"openai": "openai", "langchain": "langchain:openai", "batch": "openai"}
"""Providers, as specs begin."""


@pytest.mark.parametrize("charset", ["utf-8", "utf-16"])
@pytest.mark.parametrize("way", WAYS)
def test_no_file_and_no_word_of_a_command_holds_a_key_in_any_encoding(
    own_place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    way: str,
    charset: str,
) -> None:
    """A call is answered, one rejected, and one fails for good; a report, a pack and a cassette are made of it."""
    monkeypatch.setattr("askance.models.batch.batches.BatchPolicy", lambda: QUICK)
    for name, value in {**SECRETS, "ASKANCE_STORE": str(own_place / "store"), "ASKANCE_TRUST": str(own_place)}.items():
        monkeypatch.setenv(name, value)
    faults = [complaint(ALL, charset), complaint(ALL, charset, 500)]

    def answer(body: JsonObject) -> Reply:
        form = body.get("response_format", {}).get("json_schema", {})
        if form.get("name") in {"narration", "unusual"} and faults:
            return faults.pop()
        return chatty(ALL, body, "utf-8" if way == "batch" else charset)

    more = ["--batch"] if way == "batch" else []
    server: Any = (
        BatchServer(tmp_path / "endpoint", answer=answer)
        if way == "batch"
        else FakeEndpoint(lambda seen: closing(answer(seen.json)))
    )
    with server:
        project = Project.make(own_place, server.url, SETTINGS.replace("openai", WAYS[way], 1))
        for words in (
            ["run", "action-reason", "ad.jpg", "--options", "options.json", "--out", "out", "--html", "page.html"],
            ["eval", "run", "posters.yaml", "--out", "evaluated"],
        ):
            Path("posters.yaml").write_text(TASK, encoding="utf-8")
            Path("samples.jsonl").write_text('{"image": "ad.jpg", "target": 1}\n', encoding="utf-8")
            ended(*words, *more)
    ended("pack", "evaluated")
    ended("cache", "export", "all.jsonl")
    said = capsys.readouterr()
    project.said += [said.out, said.err, caplog.text]

    for name in ("page.html", "all.jsonl", "out/samples.jsonl", "store/cache.db"):
        assert b"[key]" in Path(name).read_bytes(), name
    assert is_zipfile("runs.pack")
    assert list(project.leaks()) == []
    for content in (*(text.encode() for text in project.said), *contents(own_place)):
        assert not holds(content, KEY)
        assert not holds(content, HEADER)


def closing(reply: Reply) -> Reply:
    return Reply(status=reply.status, body=reply.body, headers={**reply.headers, "connection": "close"})


def ended(*words: str) -> None:
    with pytest.raises(SystemExit):
        main([*words])


def contents(folder: Path) -> Iterator[bytes]:
    """What every file holds that is no picture."""
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix not in {".jpg", ".pack"}:
            yield path.read_bytes()
