"""Chat examples made of recorded calls: what a model was asked about a picture, and what it answered.

A run says which link of the chain a call was for, to which sample it belongs and how that was scored; records alone do
not. A call is left out, and counted by the reason, where it is no good example: it was refused or cut off, its reply
could not be read, it used tools, or a picture of it is not at hand. A model's thinking before its answer is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from askance.chat import JsonObject, canonical_json
from askance.errors import UsageError
from askance.evals.judges import JUDGED
from askance.evals.report.thumbnails import find
from askance.images import Image, ImagePolicy, RegionView, Shown, image_policy
from askance.images.image import image_digest
from askance.nodes.reply import Unreadable, final_text, json_object
from askance.replay.maintenance import name_pattern
from askance.training.training_set import ChatExample

if TYPE_CHECKING:
    from askance.evals import Run
    from askance.evals.sample import SampleResult
    from askance.replay import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFilter:
    """Which recorded calls become examples."""

    links: tuple[str, ...] = ()
    """Calls for these links alone; empty takes all."""
    models: tuple[str, ...] = ()
    """Calls of models whose name holds one of these, or fits it as a pattern with `*`; empty takes all."""
    min_scores: Mapping[str, float] = field(default_factory=dict[str, float])
    """By name of a value of the sample's score: the least that it may be."""
    judged: bool = False
    """Whether only answers are taken that a judge with a card calls right."""
    dedupe: bool = False
    """Whether equal answers to equal questions are one example."""

    @property
    def needs_runs(self) -> bool:
        """Whether records alone cannot be filtered so."""
        return bool(self.links or self.min_scores or self.judged)

    def form(self) -> JsonObject:
        """The filter as JSON, for a manifest."""
        return {
            "links": [*self.links],
            "models": [*self.models],
            "min_scores": dict(self.min_scores),
            "judged": self.judged,
            "dedupe": self.dedupe,
        }


@dataclass(kw_only=True)
class RecordedExamples:
    """Examples made of recorded calls, and what was left out of them."""

    examples: list[ChatExample] = field(default_factory=list[ChatExample])
    """Those of one picture or sample have one group."""
    left_out: Counter[str] = field(default_factory=Counter[str])
    names: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """By group: ids of its samples, and names and digests of its pictures."""
    pictures: dict[str, dict[str, Image | None]] = field(default_factory=dict[str, "dict[str, Image | None]"])
    """By group and digest, the pictures that it is about; None where one is not at hand. Of a call without a picture
    nobody knows what it is about unless a run says so: its group is not here."""

    @property
    def models(self) -> tuple[str, ...]:
        """Models that gave the answers."""
        return tuple(sorted({str(example.meta["model"]) for example in self.examples}))

    def without_equal(self) -> RecordedExamples:
        """The examples without those that have the prompt, the pictures and the completion of an earlier one."""
        seen, kept = set[str](), list[ChatExample]()
        for example in self.examples:
            pictures = [image.sha256 for image in example.images]
            text = canonical_json({"turns": [*example.prompt, *example.completion], "pictures": pictures})
            if text not in seen:
                seen.add(text)
                kept.append(example)
        left_out = self.left_out + Counter({"equal to another": len(self.examples) - len(kept)})
        return replace(self, examples=kept, left_out=left_out)


class _Unfit(Exception):
    """Why a call is no example."""


PictureFinder: TypeAlias = Callable[[Mapping[str, str]], Mapping[str, Image]]
"""Finds pictures by digest; it is given the names that they had, by digest."""


def examples_of_runs(runs: Sequence[Run], wanted: CallFilter, *, pictures: PictureFinder) -> RecordedExamples:
    """The calls that the answers of runs rest on, as examples; each call once.

    A call without a picture that stands alike for several of them is left out: it would tell of one what is asked of
    another.

    Args:
        runs: evaluations, or chains over pictures.
        wanted: which calls.
        pictures: finds the pictures.

    Raises:
        UsageError: no run has such a link, or one has no such score or no judge with a card, or is malformed.
    """
    _check_links(runs, wanted)
    groups, calls = _Groups(), dict[str, _Call]()
    left_out, shown, asked_by = Counter[str](), dict[str, str](), dict[str, set[str]]()
    for run in runs:
        _check_scores(run, wanted)
        suite = run.task.partition("/")[0]
        for answer in run.answers:
            image = answer.sample.image
            digest = None if image is None else image_digest(image)
            if image is not None and digest is not None:
                shown[digest] = image.name
            group = groups.of(
                _joined_by(answer, suite, digest),
                also=_aliases(answer, digest),
                about=[] if digest is None else [digest],
            )
            for key in _keys_of(answer, wanted):
                asked_by.setdefault(key, set()).add(group)
            if (why := _unwanted(answer, wanted)) is not None:
                left_out[why] += 1
                continue
            for link, key in _calls_of(answer, wanted, left_out):
                record = run.records.get(key)
                if record is None:
                    left_out["not on record"] += 1
                elif record.kind == "chat":
                    calls.setdefault(key, _Call(record, _meta(record, answer, link), group))
    own = [call for key, call in calls.items() if len({*map(groups.root, asked_by[key])}) == 1]
    if shared := len(calls) - len(own):
        left_out["the same words are about several pictures"] = shared
    return _made(own, groups, left_out, wanted=wanted, pictures=pictures(shown))


def examples_of_records(records: Iterable[Record], wanted: CallFilter, *, pictures: PictureFinder) -> RecordedExamples:
    """All chat records as examples, where no run says what they were for.

    Args:
        records: of a store or a cassette.
        wanted: which calls; only models and duplicates can be told.
        pictures: finds the pictures.

    Raises:
        UsageError: the filter asks for what only runs say.
    """
    if wanted.needs_runs:
        raise UsageError(
            "Records alone do not say which link a call was for, nor how its answer was scored.",
            hint="Name the run that asked: --run FOLDER; or leave --link, --min-score and --judged out.",
        )
    groups, calls = _Groups(), list[_Call]()
    for record in records:
        if record.kind == "chat":
            digests = [*_digests(record)]
            meta: JsonObject = {"key": record.key, "model": record.model, **_schema_of(record)}
            calls.append(_Call(record, meta, groups.of(digests or [record.key], also=digests, about=digests or None)))
    shown = {digest: digest for call in calls for digest in _digests(call.record)}
    return _made(calls, groups, Counter(), wanted=wanted, pictures=pictures(shown))


class _Call(NamedTuple):
    record: Record
    meta: JsonObject
    group: str


def _made(
    calls: Sequence[_Call],
    groups: _Groups,
    left_out: Counter[str],
    *,
    wanted: CallFilter,
    pictures: Mapping[str, Image],
) -> RecordedExamples:
    made = RecordedExamples(left_out=left_out, names=groups.aliases(), pictures=groups.pictures(pictures))
    asked_again = _asked_again([call.record for call in calls])
    for record, meta, group in calls:
        try:
            _check_reply(record, wanted, asked_again)
            made.examples.append(_example(record, meta, group=groups.root(group), pictures=pictures))
        except _Unfit as unfit:
            left_out[str(unfit)] += 1
    return made.without_equal() if wanted.dedupe else made


def find_pictures_of(runs: Sequence[Run], places: Sequence[Path]) -> PictureFinder:
    """What finds pictures by digest: in files and folders, in packs, and where runs saw them.

    Args:
        runs: their own places are looked at first.
        places: files, and folders with all folders below.
    """

    def found(wanted: Mapping[str, str]) -> dict[str, Image]:
        images = dict[str, Image]()
        for run in runs:
            kept = {digest: run.path.parent.parent / "images" / digest for digest in wanted}  # as a pack has them
            images.update(
                {digest: Image.from_path(path, sha256=digest) for digest, path in kept.items() if path.is_file()}
            )
            for answer in run.answers:
                image, place = answer.sample.image, run.picture_places.get(answer.sample.id)
                digest = None if image is None or place is None else image_digest(image)
                if place is not None and digest is not None and digest in wanted and digest not in images:
                    file = Image.from_path(place)
                    if image_digest(file) == digest:
                        images[digest] = file
        lacking = {digest: name for digest, name in wanted.items() if digest not in images}
        return {**images, **(find(lacking, places) if lacking and places else {})}

    return found


# --- groups ---


class _Groups:
    """Names that belong together: whatever shares a name with another is in one group with it."""

    def __init__(self) -> None:
        self._above = dict[str, str]()
        self._aliases = dict[str, set[str]]()
        self._about = dict[str, set[str]]()

    def root(self, name: str) -> str:
        """The name of its group."""
        while (above := self._above.setdefault(name, name)) != name:
            self._above[name] = name = self._above[above]
        return name

    def join(self, one: str, other: str) -> None:
        first, second = sorted((self.root(one), self.root(other)))
        self._above[second] = first

    def of(self, names: Sequence[str], *, also: Iterable[str], about: Iterable[str] | None) -> str:
        """The group of all these names, which are joined.

        Args:
            names: at least one.
            also: what else it is called, by which nothing is joined.
            about: digests of its pictures; None where nobody knows.
        """
        for other in names[1:]:
            self.join(names[0], other)
        self._aliases.setdefault(names[0], set()).update(also)
        if about is not None:
            self._about.setdefault(names[0], set()).update(about)
        return self.root(names[0])

    def aliases(self) -> dict[str, set[str]]:
        """What each group is called."""
        by_group = dict[str, set[str]]()
        for name, aliases in self._aliases.items():
            by_group.setdefault(self.root(name), set()).update(aliases)
        return by_group

    def pictures(self, at_hand: Mapping[str, Image]) -> dict[str, dict[str, Image | None]]:
        """By group and digest, the pictures that it is about."""
        by_group = dict[str, dict[str, Image | None]]()
        for name, digests in self._about.items():
            by_group.setdefault(self.root(name), {}).update({each: at_hand.get(each) for each in sorted(digests)})
        return by_group


def _joined_by(answer: SampleResult, suite: str, digest: str | None) -> list[str]:
    """What other samples may share: then one must not teach what the other asks."""
    sample = answer.sample
    return [*([] if digest is None else [digest]), f"{suite}: {sample.cluster}", f"{suite}: {sample.id}"]


def _aliases(answer: SampleResult, digest: str | None) -> Iterator[str]:
    sample = answer.sample
    yield from (sample.id, sample.cluster, *([] if digest is None else [digest]))
    for name in {sample.id, *([] if sample.image is None else [sample.image.name])}:
        yield from (PurePosixPath(name).name, PurePosixPath(name).stem)


# --- which calls ---


def _check_links(runs: Sequence[Run], wanted: CallFilter) -> None:
    """Checks that the links are there whose calls are taken.

    Raises:
        UsageError: one is in no run.
    """
    known = dict.fromkeys(link for run in runs for answer in run.answers for link in answer.prediction.links)
    if unknown := [link for link in wanted.links if link not in known]:
        raise UsageError(f"The runs have no link {unknown[0]!r}.", hint=f"They have {', '.join(known)}.")


def _check_scores(run: Run, wanted: CallFilter) -> None:
    """Checks that a run has the scores by which its answers are chosen.

    Raises:
        UsageError: it has not.
    """
    scores = [answer.score for answer in run.answers if answer.score is not None]
    known = {name for score in scores for name in score.values}
    if unknown := [name for name in wanted.min_scores if name not in known]:
        raise UsageError(
            f"The run {str(run.path)!r} has no score {unknown[0]!r}.",
            hint=f"It has {', '.join(sorted(known)) or 'none: it is not scored'}.",
        )
    if not wanted.judged:
        return
    if JUDGED not in known:
        raise UsageError(
            f"No judge has scored the run {str(run.path)!r}.",
            hint="Run a task that a judge scores, with `-T judge=MODEL -T card=FILE`.",
        )
    judges = cast("list[JsonObject | None]", [each.notes.get("judge") for each in scores if JUDGED in each.values])
    if not all(judge is not None and judge.get("card") for judge in judges):
        raise UsageError(
            f"The judge of the run {str(run.path)!r} has no card: how often it is wrong is not known.",
            hint="Hold it against people with `askance judge card`, and give the card: -T card=FILE.",
        )


def _unwanted(answer: SampleResult, wanted: CallFilter) -> str | None:
    """Why the calls of an answer are left out, by its score."""
    least = {**wanted.min_scores, **({JUDGED: 1.0} if wanted.judged else {})}
    if not least:
        return None
    if answer.score is None:
        return "the answer has no score"
    values = answer.score.values
    return next((f"{name} below {value:g}" for name, value in least.items() if values.get(name, -inf) < value), None)


def _keys_of(answer: SampleResult, wanted: CallFilter) -> Iterator[str]:
    """All calls for the links that are taken, be the answer wanted or not."""
    links = answer.prediction.links.items()
    return (str(key) for link, form in links if not wanted.links or link in wanted.links for key in form["calls"])


def _calls_of(answer: SampleResult, wanted: CallFilter, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
    """The calls of an answer that may become examples: link and key."""
    for link, form in answer.prediction.links.items():
        if wanted.links and link not in wanted.links:
            continue
        if form["outcome"] != "answered":
            left_out[f"the link ended as {form['outcome']}"] += 1
        elif form.get("rung") == "extracted":
            left_out["another model had to read the reply"] += 1
        else:
            yield from ((link, str(key)) for key in form["calls"])


def _asked_again(records: Sequence[Record]) -> set[str]:
    """Keys of the calls after which another goes on: it quotes the reply, mostly to say what is wrong with it."""
    asked = [record for record in records if isinstance(record.request.get("messages"), list)]
    lengths = {record.key: len(record.request["messages"]) for record in asked}
    beginnings = {_beginning(record, lengths[record.key]): record.key for record in asked}
    again = (
        beginnings.get(_beginning(record, length)) for record in asked for length in range(1, lengths[record.key] - 1)
    )
    return {key for key in again if key is not None}


def _beginning(record: Record, length: int) -> str:
    return canonical_json(
        [record.request.get("model"), record.request.get("draw"), record.request["messages"][:length]]
    )


def _check_reply(record: Record, wanted: CallFilter, asked_again: Collection[str]) -> None:
    """Checks that a reply is worth learning.

    Raises:
        _Unfit: it is not.
    """
    if wanted.models and not any(fnmatchcase(record.model.casefold(), name_pattern(each)) for each in wanted.models):
        raise _Unfit("of another model")
    if record.outcome != "answered":
        raise _Unfit(f"the call ended as {record.outcome}")
    if record.request.get("tools") or record.response.get("tool_calls"):
        raise _Unfit("with tools")
    schema: Mapping[str, Any] | None = _schema_of(record).get("schema")
    if schema is None:
        if record.key in asked_again:
            raise _Unfit("the reply was asked for again")
        return
    required: Any = schema.get("required")
    names = [str(name) for name in cast("list[Any]", required)] if isinstance(required, list) else []
    try:
        fields = json_object(str(record.response.get("text", "")), names)
    except Unreadable:
        fields = None
    if fields is None or not {*names} <= fields.keys():
        raise _Unfit("the reply lacks what its schema asks for")


# --- a call as an example ---


def _meta(record: Record, answer: SampleResult, link: str) -> JsonObject:
    score = {} if answer.score is None else {"score": dict(answer.score.values)}
    return {
        "key": record.key,
        "link": link,
        "model": record.model,
        "sample": answer.sample.id,
        **score,
        **_schema_of(record),
    }


def _schema_of(record: Record) -> JsonObject:
    """The schema that the answer had to fit, so that answers of a student can be held against it."""
    form: Any = record.request.get("response")
    schema = cast("JsonObject", form).get("schema") if isinstance(form, dict) else None
    return {"schema": schema} if isinstance(schema, dict) else {}


def _example(record: Record, meta: JsonObject, *, group: str, pictures: Mapping[str, Image]) -> ChatExample:
    """The example that a call makes.

    Raises:
        _Unfit: it makes none.
    """
    text = final_text(str(record.response.get("text", ""))).strip()
    if not text:
        raise _Unfit("the reply is empty")
    images = list[Image]()
    prompt = tuple(_turn(message, images, pictures) for message in record.request["messages"])
    completion: JsonObject = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    return ChatExample(prompt=prompt, completion=(completion,), images=tuple(images), group=group, meta=meta)


def _turn(message: Mapping[str, Any], images: list[Image], pictures: Mapping[str, Image]) -> JsonObject:
    if message["role"] not in {"system", "user", "assistant"}:
        raise _Unfit("with tools")
    return {"role": message["role"], "content": [_part(part, images, pictures) for part in message["parts"]]}


def _part(part: Mapping[str, Any], images: list[Image], pictures: Mapping[str, Image]) -> JsonObject:
    if part["type"] == "text":
        return {"type": "text", "text": str(part.get("text", ""))}
    image = pictures.get(str(part.get("sha256")))
    if image is None:
        raise _Unfit("a picture is not at hand")
    images.append(_viewed(image, part) if "view" in part else image)
    return {"type": "image"}


def _viewed(image: Image, part: Mapping[str, Any]) -> Image:
    """The picture that was sent: of a view, what was drawn."""
    try:
        shown = Shown(image, _policy(part["policy"]), RegionView.from_form(part["view"]))
        return Image.from_bytes(shown.prepare().data, name=f"{image.name}, {shown.view.show}")
    except (KeyError, TypeError, UsageError) as error:
        raise _Unfit("a view of its picture cannot be drawn") from error


def _policy(form: Mapping[str, Any]) -> ImagePolicy:
    settings = {name: value for name, value in form.items() if name not in {"name", "version"}}
    if "formats" in settings:
        settings["formats"] = tuple(settings["formats"])
    return replace(image_policy(str(form["name"])), **settings)


def _digests(record: Record) -> Iterator[str]:
    """Digests of the pictures of a request."""
    parts = (part for message in record.request.get("messages", ()) for part in message["parts"])
    return (str(part["sha256"]) for part in parts if "sha256" in part)
