"""How a sentence encoder makes a vector of the vectors of tokens, as the small files beside its weights say.

`modules.json` lists its layers: a transformer, a pooling, perhaps dense layers, perhaps a normalization. Without that
file it is a plain transformer, whose tokens are averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from askance.chat import JsonObject

MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
"""Ways of pooling, in the order in which vectors of several stand behind each other."""

OWN = "own"
"""Stands for layers that sentence-transformers alone knows."""

ACTIVATIONS = frozenset({"GELU", "Identity", "ReLU", "SiLU", "Sigmoid", "Tanh"})
"""What may stand behind a dense layer, by the name of torch."""

_KNOWN = frozenset({"Dense", "Normalize", "Pooling", "Transformer"})

Files: TypeAlias = Callable[[str], Any]
"""From the path of a JSON file beside the weights to its content; None where there is no such file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one encoder makes vectors."""

    modes: tuple[str, ...] | None = None
    """Ways of pooling; None where nothing says."""
    transformer: str = ""
    """Folder of the transformer in the encoder's folder."""
    dense: tuple[str, ...] = ()
    """Folders of dense layers."""
    longest: int | None = None
    """Tokens that are read; None where nothing says."""
    lower: bool = False
    """Whether texts are read in lower case."""
    prompts: Mapping[str, str] = field(default_factory=dict[str, str])
    """By name: what may be put in front of a text."""
    prompt: str | None = None
    """Name of the one that is, unless another is asked for."""
    keeps_prompt: bool = True
    """Whether the tokens of a prompt are pooled too."""
    beyond: str | None = None
    """A layer that is not known here."""

    @property
    def pooling(self) -> str:
        """The ways of pooling in one word; `own` where a layer is not known here."""
        return OWN if self.beyond is not None else "+".join(self.modes or ("mean",))


def recipe_of(files: Files) -> Recipe:
    """The recipe of the encoder whose files these are.

    Raises:
        ValueError: a file says what cannot be.
    """
    modules = cast("list[JsonObject]", files("modules.json") or [])
    kinds = [(str(module["type"]).rpartition(".")[2], str(module.get("path", ""))) for module in modules]
    transformer = next((path for kind, path in kinds if kind == "Transformer"), "")
    settings = cast("JsonObject", files(_in(transformer, "sentence_bert_config.json")) or {})
    whole = cast("JsonObject", files("config_sentence_transformers.json") or {})
    pooling = [cast("JsonObject", files(_in(path, "config.json")) or {}) for kind, path in kinds if kind == "Pooling"]
    prompts = {name: str(text) for name, text in cast("JsonObject", whole.get("prompts") or {}).items()}
    longest = settings.get("max_seq_length")
    return Recipe(
        modes=_modes(pooling[0]) if pooling else None,
        transformer=transformer,
        dense=tuple(path for kind, path in kinds if kind == "Dense"),
        longest=longest if isinstance(longest, int) else None,
        lower=settings.get("do_lower_case") is True,
        prompts=prompts,
        prompt=cast("str | None", whole.get("default_prompt_name")),
        keeps_prompt=all(each.get("include_prompt", True) is not False for each in pooling),
        beyond=_beyond([kind for kind, _ in kinds]),
    )


def _beyond(kinds: list[str]) -> str | None:
    """The first layer that is not known here, or that stands where none is known."""
    unknown = next((kind for kind in kinds if kind not in _KNOWN), None)
    if unknown is not None or not kinds:
        return unknown
    order = [kind for kind in kinds if kind != "Normalize"]
    usual = order[:2] == ["Transformer", "Pooling"] and set(order[2:]) <= {"Dense"} and "Normalize" not in kinds[:-1]
    return None if usual else next((kind for kind in order[2:] if kind != "Dense"), order[-1])


def _modes(settings: JsonObject) -> tuple[str, ...]:
    named: Any = settings.get("pooling_mode")
    if named is not None:
        found = (named,) if isinstance(named, str) else tuple(str(mode) for mode in named)
    else:
        on = {name.removeprefix("pooling_mode_") for name, value in settings.items() if value is True}
        found = tuple(mode for mode in MODES if on & {mode, f"{mode}_token", f"{mode}_tokens"}) or ("mean",)
    if unknown := [mode for mode in found if mode not in MODES]:
        msg = f"it pools by {unknown[0]}, and known are {', '.join(MODES)}"
        raise ValueError(msg)
    return found


def _in(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
