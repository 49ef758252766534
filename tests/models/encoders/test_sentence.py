"""`st:` against sentence-transformers, for each way of pooling, on tiny untrained encoders."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from askance.errors import ConfigError, MissingExtra
from askance.models import Engine, get_embedder
from askance.replay import MemoryStore
from tests.models.encoders.conftest import Folders

HERE = "tests/slow/test_encoders.py runs this where it is"
torch = pytest.importorskip("torch", reason=f"torch is not installed; {HERE}")
theirs = pytest.importorskip("sentence_transformers", reason=f"sentence-transformers is not installed; {HERE}")
pytestmark = [
    pytest.mark.slow(group="local"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

TEXTS = ["a cup", "the cup of brick on the table", "brick " * 40, "A Cup", "what", ""]


async def ours(folder: Path, texts: list[str] = TEXTS, *, settings: str = "") -> list[tuple[float, ...]]:
    embedder = get_embedder(f"st:{folder}{settings}", engine=Engine(records=MemoryStore()))
    return await embedder.embed(texts)


def reference(folder: Path, texts: list[str] = TEXTS, **how: Any) -> list[Any]:
    model = theirs.SentenceTransformer(str(folder), device="cpu")
    vectors = model.encode(texts, normalize_embeddings=True, show_progress_bar=False, **how)
    return [pytest.approx(vector, abs=1e-5) for vector in vectors.tolist()]


POOLED: dict[str, tuple[tuple[str, ...], str]] = {
    "mean": (("mean_tokens",), "mean"),
    "cls": (("cls_token",), "cls"),
    "max": (("max_tokens",), "max"),
    "mean by the root": (("mean_sqrt_len_tokens",), "mean_sqrt_len_tokens"),
    "weighted mean": (("weightedmean_tokens",), "weightedmean"),
    "last token": (("lasttoken",), "lasttoken"),
    "two": (("mean_tokens", "cls_token"), "cls+mean"),
}


@pytest.mark.parametrize(("ways", "name"), POOLED.values(), ids=POOLED)
async def test_each_way_of_pooling_is_that_of_sentence_transformers(
    sentences: Folders, ways: tuple[str, ...], name: str
) -> None:
    folder = sentences("encoder", pooling=ways)

    assert await ours(folder) == reference(folder)
    assert get_embedder(f"st:{folder}").parameters == {"pooling": name, "normalized": True}


SHAPES: dict[str, dict[str, Any]] = {
    "a dense layer": {"dense": "Tanh"},
    "a dense layer behind two": {"dense": "Identity", "pooling": ("mean_tokens", "max_tokens")},
    "a prompt": {"prompts": {"query": "find : ", "none": ""}, "prompt": "query"},
    "prompts that nobody uses": {"prompts": {"query": "find : "}},
    "the transformer in a folder of its own": {"inside": "0_Transformer", "pooling": ("cls_token",)},
    "the transformer alone": {"plain": True},
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
async def test_encoders_of_other_shapes(sentences: Folders, shape: dict[str, Any]) -> None:
    folder = sentences("encoder", **shape)

    assert await ours(folder) == reference(folder)


async def test_a_prompt_is_chosen_by_name(sentences: Folders) -> None:
    folder = sentences("encoder", prompts={"query": "find : ", "other": "a "}, prompt="query")

    assert await ours(folder, settings="?prompt=other") == reference(folder, prompt_name="other")
    with pytest.raises(ConfigError, match=r"has no prompt 'third'\. It has: other, query\.$"):
        get_embedder(f"st:{folder}?prompt=third")


async def test_a_layer_that_is_not_known_is_left_to_sentence_transformers(
    sentences: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sentences("encoder")
    modules = json.loads((folder / "modules.json").read_text())
    dropout = {"idx": 4, "name": "4", "path": "4_Dropout", "type": "sentence_transformers.models.Dropout"}
    (folder / "modules.json").write_text(json.dumps([*modules, dropout]))
    (folder / "4_Dropout").mkdir()
    (folder / "4_Dropout" / "config.json").write_text('{"dropout": 0.5}')

    assert await ours(folder) == reference(folder)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r"has a layer 'Dropout', which sentence-transformers alone can do\."):
        await ours(folder)


async def test_how_texts_share_batches_changes_rounding_alone(sentences: Folders) -> None:
    folder = sentences("encoder", pooling=("lasttoken",))

    alone = [(await ours(folder, [text]))[0] for text in TEXTS]

    for settings in ("", "?batch=1", "?batch=4"):
        assert await ours(folder, settings=settings) == [pytest.approx(vector, abs=1e-6) for vector in alone]


async def test_what_is_asked_for_has_to_be_how_it_was_made(sentences: Folders) -> None:
    folder, plain = sentences("encoder", pooling=("cls_token",)), sentences("plain", plain=True)

    with pytest.raises(ConfigError, match=r"pools by cls, and mean is asked for\. Write `st:.*\?pooling=cls`\.$"):
        get_embedder(f"st:{folder}?pooling=mean")
    first = [vector[0] for vector in await ours(plain, settings="?pooling=cls")]
    assert first != [vector[0] for vector in await ours(plain)]


async def test_numbers_that_are_none_are_not_recorded(sentences: Folders) -> None:
    folder = sentences("encoder")
    spoil(folder)
    records = MemoryStore()

    with pytest.raises(Exception, match="holds something that is no number"):
        await get_embedder(f"st:{folder}", engine=Engine(records=records)).embed(["a cup"])
    assert len(records) == 0


def spoil(folder: Path, part: str = "word_embeddings") -> None:
    """Puts NaN into the weights."""
    files: Any = import_module("safetensors.torch")
    file = folder / "model.safetensors"
    weights: dict[str, Any] = files.load_file(str(file))
    spoilt = {name: weight * float("nan") if part in name else weight for name, weight in weights.items()}
    files.save_file(spoilt, str(file), metadata={"format": "pt"})
