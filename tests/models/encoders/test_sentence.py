"""`st:` against the definition of each way of pooling, on tiny untrained encoders, and what it refuses to load."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from askance.errors import ConfigError, OutOfMemory
from askance.models import Engine, get_embedder
from askance.replay import Cassette, MemoryStore
from tests.models.encoders.conftest import Folders

HERE = "tests/slow/test_hf.py runs this where it is"
torch = pytest.importorskip("torch", reason=f"torch is not installed; {HERE}")
theirs = pytest.importorskip("sentence_transformers", reason=f"sentence-transformers is not installed; {HERE}")
pytestmark = [
    pytest.mark.slow(group="local"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

RECORDED = Path(__file__).parent / "recorded"
"""An encoder, and vectors that askance recorded of it when it still pooled by itself."""

TEXTS = ["a cup", "the cup of brick on the table", "brick " * 40, "A Cup", "what", ""]


async def ours(folder: Path, texts: list[str] = TEXTS, *, settings: str = "") -> list[tuple[float, ...]]:
    embedder = get_embedder(f"st:{folder}{settings}", engine=Engine(records=MemoryStore()))
    return await embedder.embed(texts)


def reference(folder: Path, texts: list[str] = TEXTS, **how: Any) -> list[Any]:
    model = theirs.SentenceTransformer(str(folder), device="cpu")
    vectors = model.encode(texts, normalize_embeddings=True, show_progress_bar=False, **how)
    return [pytest.approx(vector, abs=1e-5) for vector in vectors.tolist()]


def tokens_of(folder: Path, text: str, *, longest: int) -> Any:
    """The vectors of a text's tokens: tokens × numbers."""
    transformers: Any = import_module("transformers")
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(
        text, truncation=True, max_length=longest, return_tensors="pt"
    )
    with torch.inference_mode():
        return transformers.AutoModel.from_pretrained(folder).eval()(**tokens).last_hidden_state[0]


def weighted(tokens: Any) -> Any:
    places = torch.arange(1, len(tokens) + 1).unsqueeze(1)
    return (tokens * places).sum(dim=0) / places.sum()


WAYS: dict[str, Callable[[Any], Any]] = {
    "cls": lambda tokens: tokens[0],
    "max": lambda tokens: tokens.max(dim=0).values,
    "mean": lambda tokens: tokens.mean(dim=0),
    "mean_sqrt_len_tokens": lambda tokens: tokens.sum(dim=0) / len(tokens) ** 0.5,
    "weightedmean": weighted,
    "lasttoken": lambda tokens: tokens[-1],
}
"""The definition of each way of pooling: from the vectors of one text's tokens to its vector."""

POOLED: dict[str, tuple[tuple[str, ...], str]] = {
    "mean": (("mean_tokens",), "mean"),
    "cls": (("cls_token",), "cls"),
    "max": (("max_tokens",), "max"),
    "mean by the root": (("mean_sqrt_len_tokens",), "mean_sqrt_len_tokens"),
    "weighted mean": (("weightedmean_tokens",), "weightedmean"),
    "last token": (("lasttoken",), "lasttoken"),
    "two": (("mean_tokens", "cls_token"), "cls+mean"),
}


def defined(folder: Path, name: str, *, longest: int) -> list[Any]:
    """The vectors of `TEXTS` by the definition, each text by itself."""
    tokens = [tokens_of(folder, text, longest=longest) for text in TEXTS]
    vectors = [torch.cat([WAYS[way](each) for way in name.split("+")]) for each in tokens]
    return [pytest.approx((vector / vector.norm()).tolist(), abs=1e-5) for vector in vectors]


@pytest.mark.parametrize(("ways", "name"), POOLED.values(), ids=POOLED)
async def test_what_an_identity_calls_a_way_of_pooling_is_that_way(
    sentences: Folders, ways: tuple[str, ...], name: str
) -> None:
    folder, plain = sentences("encoder", pooling=ways), sentences("plain", plain=True)

    assert await ours(folder) == defined(folder, name, longest=8)
    assert get_embedder(f"st:{folder}").parameters == {"pooling": name, "normalized": True}
    assert await ours(plain, settings=f"?pooling={name}") == defined(plain, name, longest=32)


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


async def test_layers_of_any_kind_are_those_of_sentence_transformers(sentences: Folders) -> None:
    folder = sentences("encoder")
    add_layer(folder, "Dropout", {"dropout": 0.5})

    assert await ours(folder) == reference(folder)
    assert get_embedder(f"st:{folder}").parameters["pooling"] == "own"


def add_layer(
    folder: Path, kind: str, settings: dict[str, Any], *, package: str = "sentence_transformers.models"
) -> None:
    """Puts a layer of a kind behind the others."""
    modules = json.loads((folder / "modules.json").read_text())
    layer = {"idx": 4, "name": "4", "path": f"4_{kind}", "type": f"{package}.{kind}"}
    (folder / "modules.json").write_text(json.dumps([*modules, layer]))
    (folder / f"4_{kind}").mkdir()
    (folder / f"4_{kind}" / "config.json").write_text(json.dumps(settings))


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


async def test_texts_are_cut_where_the_transformer_ends(sentences: Folders) -> None:
    folder = sentences("encoder")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 512}')

    long, cut = await ours(folder, ["brick " * 500, "brick " * 30])

    assert long == cut


async def test_vectors_recorded_before_are_found_and_made_again() -> None:
    records = Cassette(RECORDED / "calls.jsonl")

    for settings in ("", "?prompt=other"):
        again = await ours(RECORDED / "encoder", settings=settings)
        engine = Engine(records=records, mode="replay")
        found = await get_embedder(f"st:{RECORDED}/encoder{settings}", engine=engine).embed(TEXTS)
        assert again == [pytest.approx(vector, abs=1e-5) for vector in found]


async def test_a_batch_that_does_not_fit_is_halved(
    sentences: Folders, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = sentences("encoder")
    expected = await ours(folder)
    forward, room = theirs.SentenceTransformer.forward, 2

    def crowded(self: Any, features: dict[str, Any], **how: Any) -> Any:
        if len(features["input_ids"]) > room:
            msg = "DefaultCPUAllocator: not enough memory"
            raise RuntimeError(msg)
        return forward(self, features, **how)

    monkeypatch.setattr(theirs.SentenceTransformer, "forward", crowded)
    with caplog.at_level(logging.WARNING, logger="askance"):
        assert await ours(folder) == [pytest.approx(vector, abs=1e-6) for vector in expected]
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "a batch of 6 did not fit into memory; batches have at most 3 from now on.",
        "a batch of 3 did not fit into memory; batches have at most 1 from now on.",
    ]
    room = 0
    with pytest.raises(OutOfMemory, match=r"memory for one text or picture: DefaultCPUAllocator: not enough"):
        await ours(folder)


async def test_a_text_that_names_a_picture_is_read_as_text(duals: Folders, tmp_path: Path) -> None:
    folder, image = tmp_path / "clip", tmp_path / "cup.png"
    shutil.copytree(duals("clip"), folder)
    layer = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.CLIPModel"}
    (folder / "modules.json").write_text(json.dumps([layer]))
    image.write_bytes(b"no picture, and opened all the same if it were taken for one")
    model = theirs.SentenceTransformer(str(folder), device="cpu")

    with pytest.raises(OSError, match="cannot identify image file"):
        model.encode([str(image)])
    (vector,) = await ours(folder, [str(image)])
    assert vector == pytest.approx(model.encode([{"text": str(image)}], normalize_embeddings=True)[0], abs=1e-5)


def to_pickle(folder: Path) -> None:
    """Has a layer's weights in a pickle file alone."""
    files: Any = import_module("safetensors.torch")
    torch.save(files.load_file(str(folder / "model.safetensors")), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


async def test_pickled_weights_are_read_where_that_is_allowed(sentences: Folders) -> None:
    folder = sentences("encoder", dense="Tanh")
    expected = await ours(folder)
    to_pickle(folder / "2_Dense")

    with pytest.raises(ConfigError, match=r"weights in the pickle file '2_Dense/pytorch_model\.bin'.*`\?pickled=true`"):
        await ours(folder)
    assert await ours(folder, settings="?pickled=true") == [pytest.approx(vector, abs=1e-6) for vector in expected]


async def test_pickles_beside_safetensors_do_no_harm(sentences: Folders) -> None:
    folder = sentences("encoder")
    expected = await ours(folder)
    for name in ("pytorch_model.bin", "training_args.bin", "openvino_model.bin"):
        (folder / name).write_bytes(b"cos\nsystem\n(S'touch pwned'\ntR.")

    assert await ours(folder) == expected


async def test_code_of_an_encoder_is_run_where_that_is_allowed(sentences: Folders, tmp_path: Path) -> None:
    folder = sentences("encoder")
    add_layer(folder, "Layer", {}, package="own_layers")
    trace = tmp_path / "ran"
    (folder / "own_layers.py").write_text(CODE.format(trace=str(trace)))

    with pytest.raises(ConfigError, match=r"needs 'own_layers\.Layer', which is code of its own\..*remote_code=true"):
        await ours(folder)
    assert not trace.exists()
    allowed = await ours(folder, settings="?remote_code=true")
    assert (len(allowed), trace.exists()) == (len(TEXTS), True)


CODE = """\
import pathlib
from torch import nn
pathlib.Path({trace!r}).touch()

class Layer(nn.Module):
    def forward(self, features):
        return features

    @staticmethod
    def load(path):
        return Layer()
"""


async def test_an_activation_of_other_code_is_not_replaced_without_a_word(sentences: Folders) -> None:
    folder = sentences("encoder", dense="Tanh")
    config = folder / "2_Dense" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "activation_function": "own_layers.Swish"}))

    with pytest.raises(ConfigError, match=r"needs 'own_layers\.Swish', which is code of its own\."):
        await ours(folder)


def leave(folder: Path) -> None:
    """Has a layer in a folder outside."""
    modules = json.loads((folder / "modules.json").read_text())
    shutil.move(folder / "2_Dense", folder.parent / "2_Dense")
    moved = [{**module, "path": module["path"].replace("2_", "../2_")} for module in modules]
    (folder / "modules.json").write_text(json.dumps(moved))


BROKEN: dict[str, Callable[[Path], object]] = {
    "weights of a layer cut off": lambda folder: (folder / "2_Dense" / "model.safetensors").write_bytes(
        b"\x08" + b"\0" * 9
    ),
    "no weights of a layer": lambda folder: (folder / "2_Dense" / "model.safetensors").unlink(),
    "weights cut off": lambda folder: (folder / "model.safetensors").write_bytes(b"\x08" + b"\0" * 9),
    "settings of another kind": lambda folder: (folder / "1_Pooling" / "config.json").write_text('{"pooling": "mean"}'),
    "a layer outside": leave,
}


@pytest.mark.parametrize("harm", BROKEN.values(), ids=BROKEN)
async def test_what_cannot_be_loaded_ends_with_what_to_do(sentences: Folders, harm: Callable[[Path], object]) -> None:
    folder = sentences("deep/within/encoder", dense="Tanh")
    harm(folder)

    with pytest.raises(ConfigError, match=r"cannot be loaded: .*Give a folder that holds it whole, as it was saved"):
        await ours(folder)


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
