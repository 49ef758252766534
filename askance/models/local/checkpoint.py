"""CLIP checkpoints in OpenAI's form, converted into folders of transformers, which `clip:` reads.

OpenAI's code, and code that fine-tunes its models, saves a state dict by `torch.save`: tensors by names such as
`visual.conv1.weight`, either alone or as `model_state_dict` beside an optimizer's state. Where the model was wrapped,
`module.` or `clip_model.` stands in front of each name. Such a file is data: it is read by
`torch.load(weights_only=True)`, and a file that needs code to be run is refused.

The architecture is read from the shapes: heads are 64 wide and the activation is quick GELU, as in all of OpenAI's
models. Only vision transformers can be converted; transformers has no CLIP with a ResNet. Weights are written as 32-bit
floats, whatever they were saved in.
"""

from __future__ import annotations

import json
import math
import re
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from askance.errors import ConfigError, UsageError
from askance.models.local.folder import REVISION, hub_folder
from askance.models.local.runtime import load_errors, no_progress_bars, packages

HEAD = 64
"""Numbers of a head of attention, in all of OpenAI's models."""
MEAN, DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
"""By which OpenAI's models have the colours of pictures brought to a common scale."""

_ABOUT = frozenset({"input_resolution", "context_length", "vocab_size"})
"""Entries of a state dict that are no weights."""
_WRAPPERS = re.compile(r"^(?:module\.|clip_model\.)+")
_GLOBAL = re.compile(r"GLOBAL ([\w.]+)")
_LAYER = re.compile(r"(visual\.)?transformer\.resblocks\.(\d+)\.")
_OWN_FORM = (
    "Give a checkpoint that holds the state dict of one of OpenAI's models: {'model_state_dict': …}, or it alone."
)
_WHOLE = "Copy or download the file again, whole."

_SOURCES: Mapping[str, str] = {
    "logit_scale": "logit_scale",
    "text_projection.weight": "text_projection",
    "visual_projection.weight": "visual.proj",
    "text_model.embeddings.token_embedding.weight": "token_embedding.weight",
    "text_model.embeddings.position_embedding.weight": "positional_embedding",
    "vision_model.embeddings.class_embedding": "visual.class_embedding",
    "vision_model.embeddings.position_embedding.weight": "visual.positional_embedding",
    "vision_model.embeddings.patch_embedding.weight": "visual.conv1.weight",
}
"""By the name of a weight in transformers, its name in OpenAI's code."""
_PARTS: Mapping[str, str] = {
    "text_model.encoder.layers": "transformer.resblocks",
    "vision_model.encoder.layers": "visual.transformer.resblocks",
    "text_model.final_layer_norm": "ln_final",
    "vision_model.pre_layrnorm": "visual.ln_pre",  # so spelled there
    "vision_model.post_layernorm": "visual.ln_post",
    "layer_norm1": "ln_1",
    "layer_norm2": "ln_2",
    "mlp.fc1": "mlp.c_fc",
    "mlp.fc2": "mlp.c_proj",
    "self_attn.out_proj": "attn.out_proj",
}
"""The same for parts of names; none stands in another."""
_TRANSPOSED = frozenset({"text_projection", "visual.proj"})
_THIRDS = re.compile(r"self_attn\.([qkv])_proj\.(weight|bias)$")
"""Queries, keys and values, which are thirds of one weight in OpenAI's code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedClip:
    """A folder of transformers that a checkpoint was converted into."""

    folder: Path
    weights: int
    """Numbers that were learnt."""
    image_size: int
    """Pixels on a side of a picture."""
    patch_size: int
    layers: tuple[int, int]
    """Of the tower for texts and of that for pictures."""
    tokens: int
    """The longest text."""


def convert_clip(checkpoint: Path, out: Path, *, tokenizer: str) -> ConvertedClip:
    """Writes the CLIP in `checkpoint` as a new folder `out`; nothing in the checkpoint is run.

    Args:
        checkpoint: file with a state dict in OpenAI's form.
        out: the folder to write; it may not be there yet.
        tokenizer: a folder with the files of CLIP's tokenizer, or the name of a model on the hub that was downloaded
            before.

    Raises:
        MissingExtra: torch or transformers is not installed.
        ConfigError: the checkpoint or the tokenizer cannot be used; the message says what is wrong with it.
        UsageError: `out` is there already.
    """
    torch, transformers = packages(checkpoint.name)
    if out.exists():
        raise UsageError(f"{str(out)!r} is there already.", hint="Name a new folder.")
    weights = _Weights(checkpoint, _state_dict(torch, checkpoint))
    config = weights.config()
    text, vision = config["text_config"], config["vision_config"]
    words = _tokenizer(transformers, tokenizer, text)
    with torch.device("meta"):
        model = transformers.CLIPModel(transformers.CLIPConfig(**config))
    model.load_state_dict(weights.converted(torch, model.state_dict()), assign=True)
    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    with no_progress_bars(transformers), TemporaryDirectory(prefix=".part-", dir=out.absolute().parent) as place:
        folder = Path(place, "folder")
        model.save_pretrained(folder)
        words.save_pretrained(folder)
        (folder / "preprocessor_config.json").write_text(
            json.dumps(_preparation(vision["image_size"])), encoding="utf-8"
        )
        folder.rename(out)
    return ConvertedClip(
        folder=out,
        weights=sum(weight.numel() for weight in model.parameters()),
        image_size=vision["image_size"],
        patch_size=vision["patch_size"],
        layers=(text["num_hidden_layers"], vision["num_hidden_layers"]),
        tokens=text["max_position_embeddings"],
    )


# --- reading ---


def _state_dict(torch: Any, path: Path) -> dict[str, Any]:
    """The tensors of a checkpoint by the names that OpenAI's code has for them.

    Raises:
        ConfigError: it is no checkpoint, not whole, holds code or objects, or no state dict.
    """
    stored = _loaded(torch, path)
    state = (
        cast("Mapping[object, Any]", stored).get("model_state_dict", stored) if isinstance(stored, Mapping) else None
    )
    if not isinstance(state, Mapping) or not state:
        raise ConfigError(f"The checkpoint {path.name!r} holds no state dict.", hint=_OWN_FORM)
    tensors = {_WRAPPERS.sub("", str(name)): each for name, each in cast("Mapping[object, Any]", state).items()}
    tensors = {name: each for name, each in tensors.items() if name not in _ABOUT}
    for name, each in tensors.items():
        if not isinstance(each, torch.Tensor) or each.layout is not torch.strided or not each.is_floating_point():
            raise ConfigError(f"{name!r} of the checkpoint {path.name!r} is no tensor of floats.", hint=_OWN_FORM)
    # Such a tensor takes no room in the file, and may take all memory once it is written out.
    if sum(each.numel() * each.element_size() for each in tensors.values()) > path.stat().st_size:
        raise ConfigError(f"The checkpoint {path.name!r} has tensors that are larger than it is.", hint=_WHOLE)
    return tensors


def _loaded(torch: Any, path: Path) -> object:
    """What `torch.save` wrote into a file, as far as it is data.

    Raises:
        ConfigError: it is none, or more than data.
    """
    zipped = zipfile.is_zipfile(path)
    if zipped:
        _check_archive(path)
    try:
        with warnings.catch_warnings(action="ignore"):
            return torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except OSError:
        raise
    except Exception as error:  # a broken file may end in anything
        if found := _GLOBAL.search(str(error)):
            raise ConfigError(
                f"The checkpoint {path.name!r} holds an object of {found[1]!r}, and to read that is to run code.",
                hint="Where you trust the file, save its state dict alone: "
                "`torch.save({'model_state_dict': model.state_dict()}, 'FILE.pt')`.",
            ) from None
        raise ConfigError(
            f"The file {path.name!r} cannot be read as weights that `torch.save` wrote.", hint=f"{_WHOLE} {_OWN_FORM}"
        ) from error


def _check_archive(path: Path) -> None:
    """Refuses programs, and archives that are larger inside.

    Raises:
        ConfigError: it is one.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ConfigError(f"The file {path.name!r} is a damaged archive.", hint=_WHOLE) from error
    if any(member.filename.endswith("/constants.pkl") for member in members):
        raise ConfigError(
            f"The file {path.name!r} is a TorchScript archive: a program with its weights, which is not run here.",
            hint="OpenAI's own models, which come so, are on the hub as folders that `clip:` reads, such as "
            "openai/clip-vit-base-patch16.",
        )
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ConfigError(
            f"The file {path.name!r} is a compressed archive, and `torch.save` compresses nothing.",
            hint="Unpack it, and give the checkpoint in it.",
        )


# --- converting ---


class _Weights:
    """The weights of a checkpoint.

    Args:
        path: of the checkpoint, for messages.
        tensors: by their names in OpenAI's code.

    Raises:
        ConfigError: they are those of a model with a ResNet.
    """

    def __init__(self, path: Path, tensors: Mapping[str, Any]) -> None:
        self._path = path
        self._tensors = tensors
        if "visual.layer1.0.conv1.weight" in tensors:
            raise ConfigError(
                f"The checkpoint {path.name!r} is a CLIP that sees by a ResNet, and transformers has none of these.",
                hint="Take one with a vision transformer, such as ViT-B/16.",
            )

    def config(self) -> dict[str, Any]:
        """The configuration that the shapes give.

        Raises:
            ConfigError: a weight that says it is missing, or has another shape.
        """
        places, text_width = self._sides("positional_embedding", 2)
        vision_width, _, patch, _ = self._sides("visual.conv1.weight", 4)
        side = math.isqrt(self._sides("visual.positional_embedding", 2)[0] - 1)
        vocabulary = self._sides("token_embedding.weight", 2)[0]
        text: dict[str, Any] = {
            "vocab_size": vocabulary,
            "max_position_embeddings": places,
            "bos_token_id": vocabulary - 2,
            "eos_token_id": vocabulary - 1,
            "pad_token_id": vocabulary - 1,
        }
        return {
            "projection_dim": self._sides("text_projection", 2)[1],
            "text_config": {**text, **self._tower("", text_width)},
            "vision_config": {
                "image_size": side * patch,
                "patch_size": patch,
                **self._tower("visual.", vision_width),
            },
        }

    def _tower(self, prefix: str, width: int) -> dict[str, Any]:
        found = [match[2] for match in map(_LAYER.match, self._tensors) if match and (match[1] or "") == prefix]
        inner = self._sides(f"{prefix}transformer.resblocks.0.mlp.c_fc.weight", 2)[0]
        if width % HEAD:
            raise ConfigError(
                f"The checkpoint {self._path.name!r} has vectors of {width} numbers, which are no whole number of "
                f"heads of {HEAD}.",
                hint=_OWN_FORM,
            )
        return {
            "hidden_size": width,
            "intermediate_size": inner,
            "num_hidden_layers": len(set(found)),
            "num_attention_heads": width // HEAD,
            "hidden_act": "quick_gelu",
            "layer_norm_eps": 1e-5,
        }

    def _sides(self, name: str, count: int) -> tuple[int, ...]:
        shape = tuple(self._named(name).shape)
        if len(shape) != count or 0 in shape:
            raise ConfigError(
                f"{name!r} of the checkpoint {self._path.name!r} has the shape {shape}, and CLIP's has {count} sides.",
                hint=_OWN_FORM,
            )
        return shape

    def _named(self, name: str) -> Any:
        if name not in self._tensors:
            raise ConfigError(
                f"The checkpoint {self._path.name!r} is no CLIP in OpenAI's form: it lacks {name!r}.", hint=_OWN_FORM
            )
        return self._tensors[name]

    def converted(self, torch: Any, expected: Mapping[str, Any]) -> dict[str, Any]:
        """The weights by the names that transformers has for them.

        Args:
            torch: the package.
            expected: tensors of the right shapes by these names.

        Raises:
            ConfigError: one is missing, has another shape, is not finite, or belongs to no such model.
        """
        if more := sorted(self._tensors.keys() - {_source(name) for name in expected}):
            raise ConfigError(
                f"The checkpoint {self._path.name!r} is no CLIP in OpenAI's form: it has {more[0]!r} as well.",
                hint=_OWN_FORM,
            )
        weights = {name: self._weight(name, tuple(like.shape)).float().contiguous() for name, like in expected.items()}
        for name, weight in weights.items():
            if not bool(torch.isfinite(weight).all()):
                raise ConfigError(
                    f"{_source(name)!r} of the checkpoint {self._path.name!r} has numbers that are not finite.",
                    hint=_WHOLE,
                )
        return weights

    def _weight(self, name: str, shape: tuple[int, ...]) -> Any:
        """The weight that transformers calls `name`, in this shape."""
        source = _source(name)
        tensor, third = self._named(source), _THIRDS.search(name)
        there = (3 * shape[0], *shape[1:]) if third else shape[::-1] if source in _TRANSPOSED else shape
        if tuple(tensor.shape) != there:
            raise ConfigError(
                f"{source!r} of the checkpoint {self._path.name!r} has the shape {tuple(tensor.shape)}, and beside its "
                f"other weights it would be {there}.",
                hint=_WHOLE,
            )
        if third:
            return tensor.chunk(3)["qkv".index(third[1])]
        return tensor.T if source in _TRANSPOSED else tensor


def _source(name: str) -> str:
    """The name in OpenAI's code of the weight that transformers calls `name`."""
    if name in _SOURCES:
        return _SOURCES[name]
    for theirs, own in _PARTS.items():
        name = name.replace(theirs, own)
    return _THIRDS.sub(r"attn.in_proj_\2", name)


# --- what prepares texts and pictures ---


def _tokenizer(transformers: Any, source: str, text: Mapping[str, Any]) -> Any:
    """The tokenizer in `source`, if it is the one that the weights were trained with.

    Raises:
        ConfigError: there is none, or it is another one.
    """
    folder = Path(source).expanduser()
    path = folder if folder.is_dir() else hub_folder(source, REVISION)
    if path is None:
        raise ConfigError(
            f"There is no tokenizer {source!r} on this machine: no such folder, and nothing of that name was "
            "downloaded.",
            hint="Nothing is downloaded unasked. OpenAI's is in every CLIP of theirs: "
            "`hf download openai/clip-vit-base-patch16 --include '*.json' 'merges.txt'`.",
        )
    with load_errors(source):
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
        first, *_, last = tokenizer("a")["input_ids"]
    if (len(tokenizer), first, last) != (text["vocab_size"], text["bos_token_id"], text["eos_token_id"]):
        raise ConfigError(
            f"The tokenizer in {str(path)!r} knows {len(tokenizer):,} tokens and marks a text's beginning and end by "
            f"{first} and {last}; the checkpoint knows {text['vocab_size']:,}, and marks by the last two of them.",
            hint="Give the folder of the model that was fine-tuned, such as OpenAI's.",
        )
    tokenizer.model_max_length = text["max_position_embeddings"]
    return tokenizer


def _preparation(side: int) -> dict[str, object]:
    """What OpenAI's code does with a picture: its shorter side to so many pixels, the middle, the scale of colours."""
    return {
        "image_processor_type": "CLIPImageProcessor",
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"shortest_edge": side},
        "resample": 3,  # bicubic
        "do_center_crop": True,
        "crop_size": {"height": side, "width": side},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": MEAN,
        "image_std": DEVIATION,
    }
