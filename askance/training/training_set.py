"""Training sets: a folder of examples and pictures that `datasets` and TRL load without this package.

    SET/manifest.json               what it was made of, what was left out, licences, digests
    SET/train/metadata.parquet      a row an example
    SET/train/pictures/SHA256.jpeg  each picture once
    SET/validation/…, SET/test/…    the same

This is the layout `imagefolder` of `datasets`, so `load_dataset(SET)` gives the splits with their pictures, which stay
files of their own. No picture is in two splits; so each split has its own.

| kind | columns |
|---|---|
| `chat` | `prompt`, `completion`, `images_file_names` (loaded as `images`), `group`, `meta` |
| `pairs` | `image_file_name` (loaded as `image`), `view`, `text`, `kind`, `group` |
| `choices` | `image_file_name` (loaded as `image`), `choices`, `label`, `group` |
| `text` | `input`, `target`, `group` |

`prompt` and `completion` are turns as TRL reads them: a role, and content in parts. A set of chats without any picture
has no column of pictures and its content is plain text, as templates of text models want it. `meta` and `view` are JSON
texts. A *group* is what must not be split, such as all captions of one contest.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args

from askance.amounts import many
from askance.chat import JsonObject, key_of
from askance.data_table import ArrowFiles
from askance.documents import UnreadableDocument, parse_json
from askance.errors import BadData, UsageError, optional_library
from askance.evals.exports.rows import text_of, whole
from askance.evals.run_folder import check_new, writing_to
from askance.images import WHOLE_IMAGE, Image, RegionView

FORMAT = "askance-training-set/1"
MANIFEST, ROWS, PICTURES = "manifest.json", "metadata.parquet", "pictures"
MOST_MANIFEST = 16_000_000
"""Most bytes of a manifest that is read."""
_BATCH = 1_000
"""Rows of a row group."""

Kind = Literal["chat", "pairs", "choices", "text"]
Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatExample:
    """A request and the answer to it, as turns."""

    kind_of_set: ClassVar[Kind] = "chat"

    prompt: tuple[JsonObject, ...]
    """Turns `{"role": …, "content": [{"type": "image"}, {"type": "text", "text": …}]}`; `images` has those pictures."""
    completion: tuple[JsonObject, ...]
    """One turn of the assistant."""
    images: tuple[Image, ...] = ()
    group: str = ""
    meta: JsonObject = field(default_factory=dict[str, Any])

    @property
    def pictures(self) -> tuple[Image, ...]:
        return self.images


@dataclass(frozen=True, slots=True, kw_only=True)
class PairExample:
    """A picture, or a view of one, and a text that belongs to it."""

    kind_of_set: ClassVar[Kind] = "pairs"

    image: Image
    view: RegionView = WHOLE_IMAGE
    text: str
    kind: Literal["clue", "inference"]
    group: str = ""

    @property
    def pictures(self) -> tuple[Image, ...]:
        return (self.image,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceExample:
    """A picture and texts of which one belongs to it."""

    kind_of_set: ClassVar[Kind] = "choices"

    image: Image
    choices: tuple[str, ...]
    label: int
    """Place of the right one in `choices`, from 0."""
    group: str = ""

    @property
    def pictures(self) -> tuple[Image, ...]:
        return (self.image,)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextExample:
    """A text and the text that is to be written after it."""

    kind_of_set: ClassVar[Kind] = "text"

    input: str
    target: str
    group: str = ""

    @property
    def pictures(self) -> tuple[Image, ...]:
        return ()


TrainingExample: TypeAlias = ChatExample | PairExample | ChoiceExample | TextExample


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a set was made of, for its manifest."""

    origin: JsonObject
    """The data: folders, files with digests, folds, runs."""
    filters: JsonObject = field(default_factory=dict[str, Any])
    """What examples had to be like."""
    licences: tuple[str, ...] = ()
    """What binds whoever trains on it, a sentence each."""
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many examples were left out, by reason."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrainingSet:
    """A training set on disk."""

    folder: Path
    manifest: Mapping[str, Any]

    @classmethod
    def open(cls, folder: str | Path) -> TrainingSet:
        """The set in a folder; of its rows none is read.

        Raises:
            BadData: the folder is no training set, or one of another version.
        """
        path = Path(folder)
        return cls(path, _read_manifest(path))

    @property
    def kind(self) -> Kind:
        """What its examples are."""
        return self.manifest["kind"]

    @property
    def splits(self) -> tuple[Split, ...]:
        """Which splits it has, `train` first."""
        return tuple(each for each in SPLITS if each in self.manifest["splits"])

    @property
    def has_pictures(self) -> bool:
        return bool(self.manifest["pictures"])

    @property
    def prompts(self) -> Mapping[str, Sequence[str]]:
        """By file name, digests of the prompts that its examples were asked in; empty where nobody knows them."""
        return self.manifest.get("source", {}).get("prompts", {})

    @property
    def digest(self) -> str:
        """sha256, 64 hex digits, of all that a model can learn from it: kind, rows and pictures of each split."""
        splits = {name: self.manifest["splits"][name]["sha256"] for name in self.splits}
        return key_of("training-set", {"format": FORMAT, "kind": self.kind, "splits": splits})

    def count(self, split: Split) -> int:
        """Rows of a split; 0 where there is no such split."""
        return self.manifest["splits"].get(split, {"rows": 0})["rows"]

    def examples(self, split: Split = "train") -> Iterator[TrainingExample]:
        """The examples of a split in order. A picture is read when it is used, and its digest checked.

        Raises:
            BadData: there is no such split, its file is not the one that the manifest names, or it cannot be read.
            MissingExtra: pyarrow is not installed.
        """
        if split not in self.splits:
            raise BadData(
                f"The training set {str(self.folder)!r} has no split {split!r}.",
                hint=f"It has {', '.join(self.splits)}.",
            )
        path = self.folder / split / ROWS
        if _digest_of(path) != self.manifest["splits"][split]["sha256"]:
            raise BadData(
                f"{str(path)!r} is not the file that {MANIFEST} of the set names.",
                hint="Make the set again; what is trained on it goes by its digest.",
            )
        pictures = dict[str, Image]()
        files = ArrowFiles([path])

        def picture(name: str) -> Image:
            return pictures.setdefault(name, _picture(path.parent, name))

        try:
            for batch in files.batches(files.columns):
                for row in batch.to_pylist():
                    yield _example(self.kind, row, picture)
        except (KeyError, TypeError, ValueError) as error:
            raise BadData(f"{str(path)!r} holds a row that is no example.", hint="Make the set again.") from error


def _read_manifest(folder: Path) -> Mapping[str, Any]:
    path = folder / MANIFEST
    try:
        if path.stat().st_size > MOST_MANIFEST:
            raise UnreadableDocument("is too large")
        form: Any = parse_json(path.read_bytes())
    except (OSError, UnreadableDocument) as error:
        raise BadData(
            f"{str(folder)!r} is no training set: its {MANIFEST} cannot be read.",
            hint="Make one with `askance train data …`.",
        ) from error
    if not isinstance(form, dict) or cast("JsonObject", form).get("format") != FORMAT:
        raise BadData(f"{str(path)!r} is not of the format {FORMAT!r}.", hint="Make the set with this version.")
    if not _is_manifest(cast("JsonObject", form)):
        raise BadData(f"{str(path)!r} is no manifest of a training set.", hint="Make the set again.")
    return cast("JsonObject", form)


def _is_manifest(form: Mapping[str, Any]) -> bool:
    splits: Any = form.get("splits")
    return (
        form.get("kind") in get_args(Kind)
        and isinstance(form.get("pictures"), int)
        and isinstance(splits, dict)
        and "train" in splits
        and all(
            name in SPLITS and isinstance(each, dict) and {"rows", "sha256"} <= cast("JsonObject", each).keys()
            for name, each in cast("JsonObject", splits).items()
        )
    )


def _digest_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadData(f"{str(path)!r} cannot be read: {error.strerror}.", hint="Make the set again.") from error


# --- rows ---


def _picture(folder: Path, name: str) -> Image:
    digest = Path(name).stem
    if Path(name).parts[:-1] != (PICTURES,) or len(digest) != 64:
        raise ValueError(name)
    return Image.from_path(folder / name, sha256=digest)


def _example(kind: Kind, row: Mapping[str, Any], picture: Callable[[str], Image]) -> TrainingExample:
    match kind:
        case "chat":
            return ChatExample(
                prompt=_turns(row["prompt"]),
                completion=_turns(row["completion"]),
                images=tuple(picture(name) for name in row.get("images_file_names", ())),
                group=row["group"],
                meta=parse_json(row["meta"]),
            )
        case "pairs":
            form = parse_json(row["view"])
            return PairExample(
                image=picture(row["image_file_name"]),
                view=RegionView.from_form(form) if form else WHOLE_IMAGE,
                text=row["text"],
                kind=row["kind"],
                group=row["group"],
            )
        case "choices":
            choices = tuple(row["choices"])
            if not 0 <= row["label"] < len(choices):
                raise ValueError(row["label"])
            return ChoiceExample(
                image=picture(row["image_file_name"]), choices=choices, label=row["label"], group=row["group"]
            )
        case "text":
            return TextExample(input=row["input"], target=row["target"], group=row["group"])


def _turns(turns: Sequence[Mapping[str, Any]]) -> tuple[JsonObject, ...]:
    return tuple({"role": turn["role"], "content": _parts(turn["content"])} for turn in turns)


def _parts(content: str | Sequence[Mapping[str, Any]]) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [{name: value for name, value in part.items() if value is not None} for part in content]


def _row(example: TrainingExample, names: Sequence[str], *, plain: bool) -> JsonObject:
    """An example as a row.

    Args:
        example: of any kind.
        names: of its pictures, in the folder of its split.
        plain: whether content is plain text, since no example of the set has a picture.
    """
    match example:
        case ChatExample():
            turns = {"prompt": example.prompt, "completion": example.completion}
            form = {name: _plain_turns(value) if plain else [*value] for name, value in turns.items()}
            pictures = {} if plain else {"images_file_names": [*names]}
            return {**form, **pictures, "group": example.group, "meta": text_of(example.meta)}
        case PairExample():
            form = {"text": example.text, "kind": example.kind, "group": example.group}
            return {"image_file_name": names[0], "view": text_of(example.view.canonical()), **form}
        case ChoiceExample():
            form = {"choices": [*example.choices], "label": example.label, "group": example.group}
            return {"image_file_name": names[0], **form}
        case TextExample():
            return {"input": example.input, "target": example.target, "group": example.group}


def _plain_turns(turns: Sequence[JsonObject]) -> list[JsonObject]:
    return [{"role": turn["role"], "content": "".join(part["text"] for part in turn["content"])} for turn in turns]


def _schema(kind: Kind, *, plain: bool) -> Any:
    arrow = optional_library("pyarrow", "arrow")
    text = arrow.string()
    part = arrow.struct([("type", text), ("text", text)])
    turns = arrow.list_(arrow.struct([("role", text), ("content", text if plain else arrow.list_(part))]))
    pictures = [] if plain else [("images_file_names", arrow.list_(text))]
    columns: Mapping[Kind, list[tuple[str, Any]]] = {
        "chat": [("prompt", turns), ("completion", turns), *pictures, ("group", text), ("meta", text)],
        "pairs": [(name, text) for name in ("image_file_name", "view", "text", "kind", "group")],
        "choices": [
            ("image_file_name", text),
            ("choices", arrow.list_(text)),
            ("label", arrow.int64()),
            ("group", text),
        ],
        "text": [(name, text) for name in ("input", "target", "group")],
    }
    return arrow.schema(columns[kind])


# --- writing ---


class MadeSet(NamedTuple):
    """Examples in splits, and what they were made of."""

    splits: Mapping[Split, Sequence[TrainingExample]]
    source: Source


Kept = TypeVar("Kept", bound=TrainingExample)


def write_training_set(folder: Path, splits: Mapping[Split, Sequence[Kept]], *, source: Source) -> TrainingSet:
    """Writes a training set of examples of one kind. The folder is there when the set is whole.

    Args:
        folder: a new one, or an empty one.
        splits: the examples; a split without any is left out.
        source: what they were made of.

    Raises:
        UsageError: there is something in the folder, nothing to train on, or two splits share a group or a picture.
        BadImage: a picture that cannot be read, or is none.
        MissingExtra: pyarrow is not installed.
        StoreError: the folder cannot be written.
    """
    optional_library("pyarrow", "arrow")
    check_new(folder)
    splits = {name: splits[name] for name in SPLITS if splits.get(name)}
    if "train" not in splits:
        raise UsageError(
            "No example is left to train on.", hint=_reasons(source.left_out) or "Is it the right folder and split?"
        )
    check_splits(splits)
    plain = not any(example.pictures for examples in splits.values() for example in examples)
    with _new_folder(folder) as part:
        written = {name: _write_split(part / name, examples, plain=plain) for name, examples in splits.items()}
        manifest = {
            "format": FORMAT,
            "kind": splits["train"][0].kind_of_set,
            "source": source.origin,
            "filters": source.filters,
            "licences": [*source.licences],
            "notes": [*source.notes],
            "pictures": sum(each.pop("pictures") for each in written.values()),
            "splits": written,
            "left_out": {name: count for name, count in source.left_out.items() if count},
        }
        text = json.dumps(manifest, ensure_ascii=False, indent=2)
        (part / MANIFEST).write_text(whole(text) + "\n", encoding="utf-8")
    return TrainingSet.open(folder)


def _reasons(left_out: Mapping[str, int]) -> str:
    reasons = [f"{many(count, 'example')}: {reason}" for reason, count in left_out.items() if count]
    return f"Left out: {'; '.join(reasons)}." if reasons else ""


def check_splits(splits: Mapping[Split, Sequence[TrainingExample]]) -> None:
    """Refuses splits that share a group or a picture: what was learnt by heart would be measured.

    Raises:
        UsageError: two do.
    """
    groups, pictures = dict[str, Split](), dict[str, tuple[Split, str]]()
    for split, examples in splits.items():
        for example in examples:
            if example.group and groups.setdefault(example.group, split) != split:
                raise UsageError(
                    f"The group {example.group!r} is in the splits {groups[example.group]!r} and {split!r}.",
                    hint="Keep all examples of a group in one split.",
                )
            for image in example.pictures:
                other, name = pictures.setdefault(image.sha256, (split, image.name))
                if other != split:
                    raise UsageError(
                        f"The picture {image.name!r} of the split {split!r} is {name!r} of the split {other!r}.",
                        hint="Keep all examples of a picture in one split, or leave one of the two out.",
                    )


@contextmanager
def _new_folder(folder: Path) -> Generator[Path]:
    """A folder to write to, which takes the place of `folder` once it is whole; after an error it is removed."""
    part = folder.with_name(f"{folder.name}.part")
    with writing_to(folder):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        try:
            yield part
            part.replace(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _write_split(folder: Path, examples: Sequence[TrainingExample], *, plain: bool) -> JsonObject:
    """Writes rows and pictures of a split; returns what the manifest says of it."""
    arrow, parquet = optional_library("pyarrow", "arrow"), optional_library("pyarrow.parquet", "arrow")
    folder.mkdir()
    schema, names = _schema(examples[0].kind_of_set, plain=plain), dict[str, str]()
    with parquet.ParquetWriter(folder / ROWS, schema, compression="zstd") as file:
        for start in range(0, len(examples), _BATCH):
            rows = [
                _row(example, [_keep_picture(folder, image, names) for image in example.pictures], plain=plain)
                for example in examples[start : start + _BATCH]
            ]
            file.write_table(arrow.Table.from_pylist(_whole(rows), schema=schema))
    return {"rows": len(examples), "sha256": _digest_of(folder / ROWS), "pictures": len(names)}


def _keep_picture(folder: Path, image: Image, names: dict[str, str]) -> str:
    """The name of a picture in the folder of a split, where it is written once."""
    if image.sha256 not in names:
        names[image.sha256] = name = f"{PICTURES}/{image.sha256}.{image.info.format}"
        (folder / PICTURES).mkdir(exist_ok=True)
        (folder / name).write_bytes(image.data)
    return names[image.sha256]


def _whole(value: Any) -> Any:
    """A value with lone surrogates of its texts as escapes."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {name: _whole(each) for name, each in cast("JsonObject", value).items()}
    return [_whole(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value
