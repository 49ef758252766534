"""Runs over pictures: lines in order, kept and gone on with; a picture that changed is read again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from askance.chains import Chain, end_to_end
from askance.chat import ChatRequest
from askance.errors import AuthError
from askance.evals.picture_run import PictureKey
from askance.evals.reading_folder import aread_pictures, read_pictures
from askance.models import Model, ScriptedModel
from tests.evals.odd import write_pictures
from tests.scripted import ENFORCED, model_of

OPTIONS = ("I should drink tea", "I should sleep")


@pytest.fixture
def pictures(tmp_path: Path) -> dict[Path, tuple[str, ...]]:
    folder = write_pictures(tmp_path / "pictures", 3)
    return dict.fromkeys(sorted(folder.glob("*.png")), OPTIONS)


def scripted(asked: list[ChatRequest] | None = None) -> Model:
    def reply(request: ChatRequest) -> str:
        if asked is not None:
            asked.append(request)
        return json.dumps({"answers": [1]})

    return model_of(ScriptedModel(reply, capabilities=ENFORCED))


def chain_of(model: Model) -> Chain:
    return end_to_end(model, mode="single")


def test_every_picture_has_a_line_in_order(pictures: dict[Path, tuple[str, ...]]) -> None:
    lines: list[tuple[PictureKey, Mapping[str, Any]]] = []

    run = read_pictures(chain_of(scripted()), pictures, on_line=lambda path, line: lines.append((path, line)))

    assert [(path, line["image"], line["outcome"]) for path, line in lines] == [
        (path, path.as_posix(), "answered") for path in pictures
    ]
    assert (dict(run.outcomes), run.left) == ({"answered": 3}, {})


async def test_a_run_is_gone_on_with_and_a_picture_that_changed_is_read_again(
    pictures: dict[Path, tuple[str, ...]], tmp_path: Path
) -> None:
    first, second, third = pictures
    asked: list[ChatRequest] = []
    await aread_pictures(chain_of(scripted()), pictures, out=tmp_path / "run")
    first.write_bytes(write_pictures(tmp_path / "others", 5).joinpath("04.png").read_bytes())

    run = await aread_pictures(chain_of(scripted(asked)), pictures, out=tmp_path / "run")

    lines = [json.loads(line) for line in (tmp_path / "run/samples.jsonl").read_text(encoding="utf-8").splitlines()]
    assert (len(asked), dict(run.outcomes)) == (1, {"answered": 3})
    assert {line["image"] for line in lines} == {path.as_posix() for path in (first, second, third)}
    assert json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))["totals"]["samples"] == 3


async def test_a_picture_that_is_away_for_a_while_keeps_its_answer_and_its_records(
    pictures: dict[Path, tuple[str, ...]], tmp_path: Path
) -> None:
    first = next(iter(pictures))
    asked: list[ChatRequest] = []
    await aread_pictures(chain_of(scripted()), pictures, out=tmp_path / "run")
    before = [(tmp_path / "run" / name).read_bytes() for name in ("samples.jsonl", "calls.jsonl")]
    first.rename(tmp_path / "away.png")

    run = await aread_pictures(chain_of(scripted(asked)), pictures, out=tmp_path / "run")

    assert (asked, dict(run.outcomes)) == ([], {"answered": 3})
    assert [(tmp_path / "run" / name).read_bytes() for name in ("samples.jsonl", "calls.jsonl")] == before


async def test_a_key_that_is_wrong_ends_it_at_the_first_picture(pictures: dict[Path, tuple[str, ...]]) -> None:
    def refuse(request: ChatRequest) -> str:
        raise AuthError("No such key.")

    model = model_of(ScriptedModel(refuse, capabilities=ENFORCED))

    with pytest.raises(AuthError, match="Stopped at the first image, since the others would fail alike"):
        await aread_pictures(chain_of(model), pictures)
