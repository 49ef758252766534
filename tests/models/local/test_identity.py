from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from askance.errors import ConfigError, ReplayMiss, UsageError
from askance.models import Engine, get_model, run_sync
from askance.models.config import Config
from askance.models.factory import named
from askance.models.local.folder import DIGEST_FILE, find_folder, identity_of
from askance.models.settings import Local, Price
from askance.replay import MemoryStore
from tests.models.local.conftest import MakeFolder, safetensors
from tests.models.local.questions import asked

EMPTY = Config()


def identity(path: Path, **local: object) -> str:
    how = Local(**local)  # pyright: ignore[reportArgumentType]
    return identity_of(find_folder(str(path), how), how)


def test_what_counts_is_what_the_folder_holds(make_folder: MakeFolder) -> None:
    one, copy = make_folder("one"), make_folder("copy", README__md=b"Words.")

    assert identity(one) == identity(copy)
    assert identity(one).startswith("hf:llama:")
    assert identity(one).endswith(":bfloat16")


OTHERS: dict[str, dict[str, bytes]] = {
    "weights": {"weights": b"1235"},
    "template": {"chat_template__jinja": b"{{ messages }}"},
    "vocabulary": {"vocab__txt": b"a"},
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_another_model_has_another_name(make_folder: MakeFolder, change: dict[str, bytes]) -> None:
    assert identity(make_folder("one")) != identity(make_folder("other", **change))


def test_how_the_weights_are_held_counts_and_where_does_not(make_folder: MakeFolder) -> None:
    path = make_folder()
    plain = identity(path)

    assert identity(path, dtype="float32") == plain.replace("bfloat16", "float32")
    assert identity(path, bits=4) == f"{plain}:4bit"
    assert identity(path, device="cuda:1", batch=2, attention="eager", share=False) == plain


def test_digests_of_weights_are_kept_until_the_file_changes(make_folder: MakeFolder) -> None:
    path = make_folder()
    first = identity(path)
    file = path / "model.safetensors"
    size, changed, digest = json.loads((path / DIGEST_FILE).read_text(encoding="utf-8"))[file.name]

    (path / DIGEST_FILE).write_text(json.dumps({file.name: [size, changed, "0" * 64]}), encoding="utf-8")
    trusting = identity(path)
    file.write_bytes(safetensors(b"1235"))
    os.utime(file, ns=(changed + 1, changed + 1))

    assert (size, len(digest)) == (file.stat().st_size, 64)
    assert trusting != first
    assert identity(path) not in {first, trusting}


def test_a_broken_file_of_digests_is_made_anew(make_folder: MakeFolder) -> None:
    path = make_folder()
    first = identity(path)
    (path / DIGEST_FILE).write_text('{"model.safetensors": "x"}', encoding="utf-8")

    assert identity(path) == first
    assert len(json.loads((path / DIGEST_FILE).read_text(encoding="utf-8"))["model.safetensors"]) == 3


def test_settings_name_the_weights_and_not_the_folder(make_folder: MakeFolder) -> None:
    path = make_folder("llava-1.5-7b", kind="llava")

    settings = named(f"hf:{path}", {"local": {"dtype": "float32"}}, config=EMPTY)

    assert settings.id.canonical() == {"name": identity(path, dtype="float32")}
    assert settings.local == Local(dtype="float32")
    assert (settings.family, settings.price) == ("vicuna", Price(input=0.0, output=0.0))


def test_a_name_that_is_given_needs_no_folder() -> None:
    assert named("hf:gone", {"identity": "mine"}, config=EMPTY).id.canonical() == {"name": "mine"}


def test_a_model_that_is_known_by_its_identity_replays_and_is_not_asked(make_folder: MakeFolder) -> None:
    spec = identity(make_folder())
    silent = get_model(spec, engine=Engine(mode="replay", records=MemoryStore()), config=EMPTY)
    live = get_model(spec, engine=Engine(records=MemoryStore()), config=EMPTY)

    assert str(silent.id) == spec
    with pytest.raises(ReplayMiss):
        run_sync(silent.generate(asked("What?")))
    with pytest.raises(UsageError, match=r"is known by the digest of its weights alone\. Name its folder: `hf:FOLDER`"):
        run_sync(live.generate(asked("What?")))


BAD = {
    "unknown": {"gpu": 1},
    "bits": {"bits": 5},
    "batch": {"batch": 0},
    "flag": {"remote_code": "yes"},
    "type": {"dtype": "int8"},
}


@pytest.mark.parametrize("local", BAD.values(), ids=BAD)
def test_settings_that_do_not_fit(local: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"does not fit 'local'.*Wanted: a table with any of `device`, `dtype`"):
        named("hf:gone", {"identity": "mine", "local": local}, config=EMPTY)
