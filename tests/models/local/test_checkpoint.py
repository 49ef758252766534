"""CLIP checkpoints in OpenAI's form: converted, they give the vectors of OpenAI's formula, worked out here."""

from __future__ import annotations

import argparse
import json
import math
import os
import pickle
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from askance.cli import main
from askance.errors import ConfigError, UsageError
from askance.images import Image
from askance.models import Engine, get_embedder
from askance.models.local.checkpoint import DEVIATION, MEAN, convert_clip
from askance.replay import MemoryStore
from tests.scripted import PICTURES

torch: Any = pytest.importorskip("torch", reason="torch is not installed; tests/slow/test_hf.py runs this where it is")
t: Any = pytest.importorskip("transformers")
tokenizers: Any = pytest.importorskip("tokenizers")
pytestmark = pytest.mark.slow(group="local")

WIDTH, SEES, JOINT, LAYERS, LONGEST, PATCH, GRID = 128, 64, 32, 2, 16, 8, 4
TEXTS = ["a cup made of bricks", "the surface is a horse", "tea"]
CLOSE = 1e-5


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tokenizer that marks texts by its last two tokens, as CLIP's does."""
    raw = tokenizers.Tokenizer(tokenizers.models.BPE())
    raw.normalizer = tokenizers.normalizers.Lowercase()
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    raw.train_from_iterator([*TEXTS, "a coin, a rocket, a bottle of feathers"], trainer)
    raw.add_special_tokens(["<start>", "<end>"])
    ids = [(name, raw.token_to_id(name)) for name in ("<start>", "<end>")]
    raw.post_processor = tokenizers.processors.TemplateProcessing(single="<start> $A <end>", special_tokens=ids)
    folder = tmp_path_factory.mktemp("words")
    made = t.PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<start>", eos_token="<end>", pad_token="<end>", model_max_length=1000
    )
    made.save_pretrained(folder)
    return folder


def tower(prefix: str, width: int) -> dict[str, Any]:
    """Random weights of a tower, by their names in OpenAI's code."""
    shapes = {
        "ln_1.weight": (width,),
        "ln_1.bias": (width,),
        "attn.in_proj_weight": (3 * width, width),
        "attn.in_proj_bias": (3 * width,),
        "attn.out_proj.weight": (width, width),
        "attn.out_proj.bias": (width,),
        "ln_2.weight": (width,),
        "ln_2.bias": (width,),
        "mlp.c_fc.weight": (2 * width, width),
        "mlp.c_fc.bias": (2 * width,),
        "mlp.c_proj.weight": (width, 2 * width),
        "mlp.c_proj.bias": (width,),
    }
    return {
        f"{prefix}transformer.resblocks.{layer}.{name}": torch.randn(shape) * 0.2
        for layer in range(LAYERS)
        for name, shape in shapes.items()
    }


@pytest.fixture(scope="module")
def state(words: Path) -> dict[str, Any]:
    """A state dict in OpenAI's form: untrained, and spread wide enough to tell things apart."""
    torch.manual_seed(5)
    shapes = {
        "positional_embedding": (LONGEST, WIDTH),
        "text_projection": (WIDTH, JOINT),
        "visual.class_embedding": (SEES,),
        "visual.positional_embedding": (GRID**2 + 1, SEES),
        "visual.proj": (SEES, JOINT),
        "visual.conv1.weight": (SEES, 3, PATCH, PATCH),
        "visual.ln_pre.weight": (SEES,),
        "visual.ln_pre.bias": (SEES,),
        "visual.ln_post.weight": (SEES,),
        "visual.ln_post.bias": (SEES,),
        "token_embedding.weight": (len(t.AutoTokenizer.from_pretrained(words)), WIDTH),
        "ln_final.weight": (WIDTH,),
        "ln_final.bias": (WIDTH,),
    }
    made = {name: torch.randn(shape) * 0.5 for name, shape in shapes.items()}
    return {**made, **tower("visual.", SEES), **tower("", WIDTH), "logit_scale": torch.tensor(2.5)}


# --- OpenAI's formula ---


def normed(x: Any, state: Mapping[str, Any], name: str) -> Any:
    spread = x.var(-1, unbiased=False, keepdim=True) + 1e-5
    return (x - x.mean(-1, keepdim=True)) / spread.sqrt() * state[f"{name}.weight"] + state[f"{name}.bias"]


def through(x: Any, state: Mapping[str, Any], prefix: str, *, causal: bool) -> Any:
    """A sequence of vectors through a tower: blocks of attention with heads of 64, and quick GELU."""
    length, width = x.shape
    mask = torch.full((length, length), -math.inf).triu(1) if causal else torch.zeros(length, length)
    for layer in range(LAYERS):
        block = f"{prefix}transformer.resblocks.{layer}"
        joint = (
            normed(x, state, f"{block}.ln_1") @ state[f"{block}.attn.in_proj_weight"].T
            + state[f"{block}.attn.in_proj_bias"]
        )
        heads = [each.reshape(length, width // 64, 64).transpose(0, 1) for each in joint.split(width, -1)]
        weights = torch.softmax(heads[0] @ heads[1].transpose(1, 2) / 8 + mask, -1)
        seen = (weights @ heads[2]).transpose(0, 1).reshape(length, width)
        x = x + seen @ state[f"{block}.attn.out_proj.weight"].T + state[f"{block}.attn.out_proj.bias"]
        inner = (
            normed(x, state, f"{block}.ln_2") @ state[f"{block}.mlp.c_fc.weight"].T + state[f"{block}.mlp.c_fc.bias"]
        )
        inner = inner * torch.sigmoid(1.702 * inner)
        x = x + inner @ state[f"{block}.mlp.c_proj.weight"].T + state[f"{block}.mlp.c_proj.bias"]
    return x


def text_vector(ids: list[int], state: Mapping[str, Any]) -> Any:
    x = state["token_embedding.weight"][ids] + state["positional_embedding"][: len(ids)]
    x = normed(through(x, state, "", causal=True), state, "ln_final")
    return unit(x[max(range(len(ids)), key=ids.__getitem__)] @ state["text_projection"])


def picture_vector(image: Image, state: Mapping[str, Any]) -> Any:
    picture, side = image.open().convert("RGB"), PATCH * GRID
    scale = side / min(picture.size)
    picture = picture.resize((int(picture.width * scale), int(picture.height * scale)), resample=3)
    left, top = round((picture.width - side) / 2), round((picture.height - side) / 2)
    picture = picture.crop((left, top, left + side, top + side))
    pixels = torch.tensor(list(picture.tobytes())).reshape(side, side, 3) / 255
    pixels = (pixels - torch.tensor(MEAN)) / torch.tensor(DEVIATION)
    patches = pixels.reshape(GRID, PATCH, GRID, PATCH, 3).permute(0, 2, 4, 1, 3).reshape(GRID**2, -1)
    patches = patches @ state["visual.conv1.weight"].reshape(SEES, -1).T
    x = torch.cat([state["visual.class_embedding"][None], patches]) + state["visual.positional_embedding"]
    x = through(normed(x, state, "visual.ln_pre"), state, "visual.", causal=False)
    return unit(normed(x[0], state, "visual.ln_post") @ state["visual.proj"])


def unit(vector: Any) -> Any:
    return vector / vector.norm()


# --- converting ---

State: TypeAlias = "dict[str, Any]"
WRAPPED: dict[str, Callable[[State], State]] = {
    "bare": lambda state: state,
    "in model_state_dict": lambda state: {"model_state_dict": state, "optimizer_state_dict": {"step": 3}},
    "of an extractor": lambda state: {"model_state_dict": {f"clip_model.{name}": each for name, each in state.items()}},
    "on several GPUs": lambda state: {
        "model_state_dict": {f"module.clip_model.{name}": each for name, each in state.items()}
    },
    "with sizes": lambda state: {**state, "input_resolution": torch.tensor(32), "vocab_size": torch.tensor(302)},
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_a_converted_checkpoint_gives_the_vectors_of_the_formula(
    wrap: Callable[[State], State], state: dict[str, Any], words: Path, tmp_path: Path
) -> None:
    torch.save(wrap(state), tmp_path / "clip.pt")

    made = convert_clip(tmp_path / "clip.pt", tmp_path / "made" / "clip", tokenizer=str(words))

    assert (made.layers, made.image_size, made.patch_size, made.tokens) == ((2, 2), 32, 8, LONGEST)
    assert made.weights == sum(each.numel() for each in state.values())
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["clip"]
    model = t.AutoModel.from_pretrained(made.folder).eval()
    tokenizer = t.AutoTokenizer.from_pretrained(made.folder)
    pixels = t.AutoImageProcessor.from_pretrained(made.folder, backend="pil")
    images = [Image.load(PICTURES / name) for name in ("brick-cup.jpg", "coin-horse.jpg")]
    with torch.inference_mode():
        found = model(
            **tokenizer(TEXTS, padding=True, return_tensors="pt"),
            **pixels([image.open() for image in images], return_tensors="pt"),
        )
    wanted_texts = torch.stack([text_vector(tokenizer(text)["input_ids"], state) for text in TEXTS])
    wanted_pictures = torch.stack([picture_vector(image, state) for image in images])
    assert float((found.text_embeds - wanted_texts).abs().max()) < CLOSE
    assert float((found.image_embeds - wanted_pictures).abs().max()) < CLOSE
    assert float((found.logits_per_image - math.exp(2.5) * wanted_pictures @ wanted_texts.T).abs().max()) < 20 * CLOSE


async def test_the_folder_is_used_as_a_dual_encoder(state: dict[str, Any], words: Path, tmp_path: Path) -> None:
    torch.save({name: each.half() for name, each in state.items()}, tmp_path / "clip.pt")
    convert_clip(tmp_path / "clip.pt", tmp_path / "clip", tokenizer=str(words))
    embedder = get_embedder(f"clip:{tmp_path / 'clip'}", engine=Engine(records=MemoryStore()))

    (vector,) = await embedder.embed(TEXTS[:1])

    ids = t.AutoTokenizer.from_pretrained(words)(TEXTS[0])["input_ids"]
    half = {name: each.half().float() for name, each in state.items()}
    assert vector == pytest.approx(text_vector(ids, half).tolist(), abs=1e-3)
    assert json.loads((tmp_path / "clip" / "config.json").read_text(encoding="utf-8"))["dtype"] == "float32"


def test_the_command_says_what_it_made(
    state: dict[str, Any], words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(state, tmp_path / "clip.pt")
    typed = ["models", "convert", str(tmp_path / "clip.pt"), str(tmp_path / "clip"), "--tokenizer", str(words)]

    codes: list[object] = []
    for _ in range(2):
        with pytest.raises(SystemExit) as ended:
            main(typed)
        codes.append(ended.value.code)

    printed = capsys.readouterr()
    assert codes == [0, 2]
    assert printed.out == (
        f"{tmp_path / 'clip'}: a CLIP of 0.4 million weights\n"
        "  texts     2 layers, up to 16 tokens\n"
        "  pictures  2 layers, 32 × 32 pixels in patches of 8 × 8\n"
        f"It is used as clip:{tmp_path / 'clip'}.\n"
    )
    assert printed.err == f"askance: {str(tmp_path / 'clip')!r} is there already.\n  → Name a new folder.\n"


# --- what cannot be converted ---


class Ran:
    """Makes a folder where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("ran",)


def replaced(state: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    """`state` with other entries, by names with `_` for `.`; None leaves one out."""
    changed = {**state, **{name.replace("__", "."): each for name, each in others.items()}}
    return {name: each for name, each in changed.items() if each is not None}


STATES: dict[str, tuple[Callable[[State], object], str]] = {
    "a list": (lambda _: [1, 2], "holds no state dict. Give a checkpoint that holds the state dict of one of"),
    "an empty one": (lambda _: {}, "holds no state dict. Give"),
    "other entries": (
        lambda _: {"state_dict": {}},
        "'state_dict' of the checkpoint 'x.pt' is no tensor of floats. Give",
    ),
    "whole numbers": (
        lambda state: replaced(state, logit_scale=torch.tensor(3)),
        "'logit_scale' of the checkpoint 'x.pt' is no tensor of floats. Give",
    ),
    "another model": (
        lambda _: {"fc.weight": torch.zeros(2, 2)},
        "The checkpoint 'x.pt' is no CLIP in OpenAI's form: it lacks 'positional_embedding'. Give a checkpoint",
    ),
    "a ResNet": (
        lambda state: replaced(state, visual__layer1__0__conv1__weight=torch.zeros(1)),
        "is a CLIP that sees by a ResNet, and transformers has none of these. Take one with a vision transformer, such",
    ),
    "one missing": (
        lambda state: replaced(state, visual__ln_pre__bias=None),
        "The checkpoint 'x.pt' is no CLIP in OpenAI's form: it lacks 'visual.ln_pre.bias'. Give",
    ),
    "no layers": (
        lambda state: {name: each for name, each in state.items() if not name.startswith("transformer.")},
        "it lacks 'transformer.resblocks.0.mlp.c_fc.weight'. Give",
    ),
    "one more": (
        lambda state: replaced(state, visual__ln_extra__bias=torch.zeros(3)),
        "The checkpoint 'x.pt' is no CLIP in OpenAI's form: it has 'visual.ln_extra.bias' as well. Give",
    ),
    "other sides": (
        lambda state: replaced(state, positional_embedding=torch.zeros(16)),
        "'positional_embedding' of the checkpoint 'x.pt' has the shape (16,), and CLIP's has 2 sides. Give",
    ),
    "a projection that does not fit": (
        lambda state: replaced(state, visual__proj=torch.zeros(64, 31)),
        "'visual.proj' of the checkpoint 'x.pt' has the shape (64, 31), and beside its other weights it would be (64, ",
    ),
    "thirds that do not fit": (
        lambda state: replaced(state, transformer__resblocks__1__attn__in_proj_bias=torch.zeros(383)),
        "has the shape (383,), and beside its other weights it would be (384,). Copy or download",
    ),
    "places of no square": (
        lambda state: replaced(state, visual__positional_embedding=torch.zeros(16, 64)),
        "has the shape (16, 64), and beside its other weights it would be (10, 64).",
    ),
    "other heads": (
        lambda state: replaced(state, positional_embedding=torch.zeros(16, 100)),
        "has vectors of 100 numbers, which are no whole number of heads of 64. Give",
    ),
    "no numbers": (
        lambda state: replaced(state, ln_final__bias=torch.full((128,), math.nan)),
        "'ln_final.bias' of the checkpoint 'x.pt' has numbers that are not finite. Copy or download",
    ),
    "more than the file holds": (
        lambda state: replaced(state, token_embedding__weight=torch.zeros(1).expand(10_000_000, 128)),
        "The checkpoint 'x.pt' has tensors that are larger than it is. Copy or download",
    ),
    "an object beside": (
        lambda state: {"model_state_dict": state, "args": argparse.Namespace(lr=1)},
        "holds an object of 'argparse.Namespace', and to read that is to run code. Where you trust the file, save its",
    ),
    "a whole model": (
        lambda _: torch.nn.Linear(2, 2),
        "holds an object of 'torch.nn.modules.linear.Linear', and to read that is to run code.",
    ),
    "code": (lambda state: {**state, "x": Ran()}, ".mkdir', and to read that is to run code."),
}


@pytest.mark.parametrize(("make", "message"), STATES.values(), ids=STATES)
def test_a_checkpoint_of_something_else_is_named(
    make: Callable[[State], object], message: str, state: dict[str, Any], words: Path, tmp_path: Path
) -> None:
    torch.save(make(state), tmp_path / "x.pt")

    with pytest.raises(ConfigError) as caught:
        convert_clip(tmp_path / "x.pt", tmp_path / "out", tokenizer=str(words))

    assert message in str(caught.value)
    assert not Path("ran").exists()
    assert {path.name for path in tmp_path.iterdir()} <= {"x.pt", "work"}


def cut_off(path: Path) -> None:
    torch.save({"a": torch.zeros(1000)}, path)
    path.write_bytes(path.read_bytes()[:2000])


def compressed(path: Path) -> None:
    torch.save({"a": torch.zeros(1000)}, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def program(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("data.pkl", "code/__torch__/torch/nn/modules/linear.py", "constants.pkl", "version"):
            archive.writestr(f"linear/{name}", b"")


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "TorchScript": (
        program,
        "The file 'x.pt' is a TorchScript archive: a program with its weights, which is not run here. OpenAI's own",
    ),
    "a pickle": (
        lambda path: path.write_bytes(pickle.dumps(Ran(), protocol=2)),
        ".mkdir', and to read that is to run code.",
    ),
    "a newer pickle": (
        lambda path: path.write_bytes(pickle.dumps(Ran())),
        "The file 'x.pt' cannot be read as weights that `torch.save` wrote. Copy or download the file again, whole.",
    ),
    "words": (lambda path: path.write_text("weights"), "cannot be read as weights that `torch.save` wrote."),
    "nothing": (lambda path: path.touch(), "cannot be read as weights that `torch.save` wrote."),
    "cut off": (cut_off, "cannot be read as weights that `torch.save` wrote."),
    "compressed": (
        compressed,
        "The file 'x.pt' is a compressed archive, and `torch.save` compresses nothing. Unpack it, and give the",
    ),
}


@pytest.mark.parametrize(("write", "message"), FILES.values(), ids=FILES)
def test_a_file_that_is_no_checkpoint_is_named(
    write: Callable[[Path], object], message: str, words: Path, tmp_path: Path
) -> None:
    write(tmp_path / "x.pt")

    with pytest.raises(ConfigError) as caught:
        convert_clip(tmp_path / "x.pt", tmp_path / "out", tokenizer=str(words))

    assert message in str(caught.value)
    assert not Path("ran").exists()


def test_a_folder_that_is_there_is_kept(state: dict[str, Any], words: Path, tmp_path: Path) -> None:
    torch.save(state, tmp_path / "x.pt")

    with pytest.raises(UsageError, match=r"is there already\. Name a new folder\.$"):
        convert_clip(tmp_path / "x.pt", words, tokenizer=str(words))


def test_the_tokenizer_is_that_of_the_weights(state: dict[str, Any], words: Path, tmp_path: Path) -> None:
    torch.save(replaced(state, token_embedding__weight=torch.zeros(400, WIDTH)), tmp_path / "x.pt")

    with pytest.raises(ConfigError) as caught:
        convert_clip(tmp_path / "x.pt", tmp_path / "out", tokenizer=str(words))
    assert "tokens and marks a text's beginning and end by" in str(caught.value)
    assert str(caught.value).endswith(
        "the checkpoint knows 400, and marks by the last two of them. Give the folder of the model that was "
        "fine-tuned, such as OpenAI's."
    )
    with pytest.raises(ConfigError) as caught:
        convert_clip(tmp_path / "x.pt", tmp_path / "out", tokenizer="nobody/has-this")
    assert str(caught.value).startswith("There is no tokenizer 'nobody/has-this' on this machine: no such folder, and")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"^The model '.*empty' cannot be loaded: "):
        convert_clip(tmp_path / "x.pt", tmp_path / "out", tokenizer=str(tmp_path / "empty"))
    assert {path.name for path in tmp_path.iterdir()} <= {"empty", "x.pt", "work"}
