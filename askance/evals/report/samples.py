"""Samples for the script of a page: rows that it reads at once, and details that it unpacks when they are opened.

Prompts repeat the replies of earlier calls, and the calls of one sample in several runs are alike. So a block keeps the
data of a sample together and is compressed, to about an eighth. The script unpacks it when the sample is opened.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from askance.amounts import many, shortened
from askance.atypicality import Statement
from askance.chains import LINKS
from askance.chains.output_line import link_values
from askance.errors import UsageError
from askance.evals.ranking import texts_of_hits
from askance.evals.report.html import DataBlock, block, packed_block
from askance.evals.report.run_part import RESULTS, kinds_of_options, options_of, places_in, plain, true_places
from askance.evals.report.shown_views import image_forms, regions_of, views_in
from askance.evals.report.transcript_part import transcript_forms
from askance.evals.sample import HUMAN_RATINGS, INFERENCES, REGIONS
from askance.models.prices import record_cost

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.evals.report.blame_part import BlamePart
    from askance.evals.report.run_part import RunPart
    from askance.evals.report.thumbnails import Thumbnails
    from askance.evals.sample import Prediction, Sample, SampleResult
    from askance.replay import Record

BLOCK = 50
"""Samples whose details are unpacked together."""
PICTURE_BLOCK = 50
CALLS_MB = 200.0
"""Megabytes of prompts and replies in a page before they are compressed; the calls of samples beyond it stay in the
run's folder."""

TITLES: Mapping[str, str] = {**{link.name: link.title for link in LINKS}, "solver": "Solver"}
"""Names of links on the page; other links have their own names."""

REGIONS_SHOWN = 12
"""Regions that a table of scores has a column for; a page shows no table of more."""
HITS_SHOWN = 20
"""Hits of a ranking that a page lists; the run's folder has all."""

_LONGEST = 4000
"""Characters of a text that stood in a link's place, or that followed from it."""

WITHOUT = "Left out of this page, which holds the calls of the first samples only; the run's folder has it."


@dataclass(kw_only=True)
class CallRoom:
    """How much room is left for calls in a page."""

    left: float = CALLS_MB * 1e6
    refused: int = 0
    """Samples whose calls had no room."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of calls that are left out."""
        if not self.refused:
            return ()
        return (f"the calls of {many(self.refused, 'sample')} had no room in this page; they are in the run's folder",)

    def takes(self, form: Mapping[str, Any]) -> bool:
        """Whether there is room for `form`, which is then taken."""
        size = len(json.dumps(form, ensure_ascii=False))
        if size > self.left:
            self.refused += 1
            return False
        self.left -= size
        return True


@dataclass(kw_only=True)
class SampleBrowser:
    """The samples of a page, as its script shows them: rows, thumbnails, and all that is known of each sample.

    Args:
        pictures: thumbnails.
        files: addresses of the thumbnails where they lie beside the page, in their order; None is within it.
    """

    pictures: Thumbnails
    files: Sequence[str] | None = None
    _room: CallRoom = field(default_factory=CallRoom)
    _details: list[DataBlock] = field(default_factory=list["DataBlock"])
    _lists: int = 0
    _numbers: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self._numbers = {key: number for number, key in enumerate(self.pictures.jpegs)}

    def add(self, parts: Sequence[RunPart], answers: Sequence[Sequence[SampleResult]]) -> None:
        """Adds a list of samples.

        Args:
            parts: runs that are shown side by side.
            answers: by sample, what each of the runs answered.
        """
        self._details += _sample_blocks(self._lists, parts, answers, browser=self, room=self._room)
        self._lists += 1

    def number(self, key: str | None) -> int | None:
        """The number of a picture, or of a view of one, among the thumbnails; None where it has none."""
        return self._numbers.get(key or "")

    def numbers(self, form: Mapping[str, Any]) -> list[int]:
        """The numbers of the views in the canonical form of what was shown."""
        return [number for key in views_in(form) if (number := self.number(key)) is not None]

    @cached_property
    def dollars(self) -> Callable[[Record], float | None]:
        """What a call cost as it was asked, in US dollars, by list prices of today; None where that is not known."""
        return record_cost(())

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of pictures and calls that are not there."""
        return (*self.pictures.notes, *self._room.notes)

    def blocks(self, index: JsonObject) -> list[DataBlock]:
        """The data of the page for its script, `index` first, with what else the script has to know."""
        settings: JsonObject = {
            "anyPicture": bool(self._numbers),
            "pictureBlock": PICTURE_BLOCK,
            "links": dict(TITLES),
            "block": BLOCK,
            **({"files": list(self.files)} if self.files is not None else {}),
            **({"without": WITHOUT} if self._room.refused else {}),
        }
        return [block("index", {**settings, **index}), *self._details, *self._pictures()]

    def _pictures(self) -> Iterator[DataBlock]:
        """The pictures that are within the page."""
        if self.files is None:
            uris = [self.pictures.uri(key) for key in self._numbers]
            for start in range(0, len(uris), PICTURE_BLOCK):
                yield block(f"pictures-{start // PICTURE_BLOCK}", uris[start : start + PICTURE_BLOCK])


def _sample_blocks(
    number: int,
    parts: Sequence[RunPart],
    answers: Sequence[Sequence[SampleResult]],
    *,
    browser: SampleBrowser,
    room: CallRoom,
) -> Iterator[DataBlock]:
    """Samples with all that is known of them, block by block, each answer with the calls that it rests on.

    Args:
        number: of the list of samples on the page.
        parts: runs that are shown side by side.
        answers: by sample, what each of the runs answered.
        browser: numbers the pictures.
        room: for calls.
    """
    for start in range(0, len(answers), BLOCK):
        written: set[str] = set()
        samples: list[list[JsonObject]] = []
        for several in answers[start : start + BLOCK]:
            sides: list[JsonObject] = []
            for part, answer in zip(parts, several, strict=True):
                new = {key: form for key, form in calls_of(part, answer, browser).items() if key not in written}
                calls = new if room.takes(new) else {}
                written.update(calls)
                looking = transcript_forms(answer, browser.number)
                detail = {**detail_of(answer), **_regions_of(answer, browser), **_blame_of(part, answer)}
                detail |= {"looking": looking} if looking else {}
                sides.append({"detail": detail, "calls": calls})
            samples.append(sides)
        yield packed_block(f"d-{number}-{start // BLOCK}", samples)


def _regions_of(answer: SampleResult, browser: SampleBrowser) -> JsonObject:
    """The number of the picture on which the regions of a sample are drawn."""
    regions = regions_of(answer.sample)
    number = None if regions is None else browser.number(regions.key)
    return {} if number is None else {"regions": number}


def _blame_of(part: RunPart, answer: SampleResult) -> JsonObject:
    several = [] if part.blames is None else [detail_of_blame(each, answer) for each in part.blames.parts]
    blames = [each for each in several if each is not None]
    return {"blame": blames} if blames else {}


_SHOWN_TRACE = frozenset({"verbalization", "statement", "statement_reason", "answers", "reply", "steps"})


def detail_of(answer: SampleResult) -> JsonObject:
    """One answer: its inputs, its target, the values of its links, and its score."""
    sample, prediction = answer.sample, answer.prediction
    options = options_of(sample)
    true, chosen = true_places(sample, options), places_in(prediction.value, options)
    trace, shown = dict(prediction.trace), _hits(answer) or _table(answer)
    form: JsonObject = {
        "group": sample.cluster if sample.cluster != sample.id else None,
        "image": None if sample.image is None else {"name": sample.image.name, "sha256": sample.image.sha256},
        "inputs": {name: value for name, value in sample.inputs_form().items() if name != "options"},
        "tags": dict(sample.tags),
        "options": options,
        "true": true,
        "chosen": chosen if prediction.answered else None,
        "kinds": kinds_of_options(sample, options),
        "target": None if true is not None or shown else sample.target,
        "value": None if (chosen is not None and prediction.answered) or shown else prediction.value,
        **shown,
        "reason": prediction.reason,
        "verbalization": _verbalization(prediction),
        "statement": trace.get("statement"),
        "shots": _map(sample.trace.get("shots")),
        "trace": {name: value for name, value in trace.items() if name not in _SHOWN_TRACE},
        "links": [_link(name, link, prediction.meta) for name, link in prediction.links.items()],
        "tries": prediction.meta.get("tries") or {},
    }
    if answer.score is not None:
        form["score"] = answer.score.form()
    elif answer.unscored:
        form["unscored"] = answer.unscored
    return {name: value for name, value in form.items() if value not in (None, [], {})}


def _hits(answer: SampleResult) -> JsonObject:
    """The first hits of a ranking, which of them are true, and where the true ones stand; empty for other answers."""
    prediction, target = answer.prediction, _map(answer.sample.target)
    texts = texts_of_hits(prediction.value)
    if texts is None:
        return {}
    notes = _map(None if answer.score is None else answer.score.notes)
    ranks, verdicts = _map(notes.get("ranks")), _map(notes.get("verdicts"))
    true = [str(each) for each in _list(target.get("true"))]
    shown = [plain(each) for each in _list(target.get("texts"))]
    hits = [
        {
            "text": shortened(text, _LONGEST),
            "true": name in true,
            **({"verdict": str(verdicts[name])} if name in verdicts else {}),
        }
        for name, text in islice(texts.items(), HITS_SHOWN)
    ]
    known = {name: rank for name, rank in ranks.items() if type(rank) is int}
    truths = sorted(
        zip(true, shown if len(shown) == len(true) else true, strict=True),
        key=lambda each: known.get(each[0], math.inf),
    )
    return {
        "hits": hits,
        "ranked": len(texts) if prediction.ranking is None else prediction.ranking.count,
        "truths": [
            {"text": shortened(text, _LONGEST), **({"rank": known[name]} if name in known else {})}
            for name, text in truths
        ],
    }


def _table(answer: SampleResult) -> JsonObject:
    """The scores of the inferences of a sample: of one region with what people say, the highest first; else by region.

    Empty for other answers, for more than `REGIONS_SHOWN` regions, and where the file of the scores cannot be read.
    """
    sample, matrix = answer.sample, answer.prediction.matrix
    regions, texts = _list(sample.inputs.get(REGIONS)), _list(sample.inputs.get(INFERENCES))
    if matrix is None or matrix.shape != (len(regions), len(texts)) or len(regions) > REGIONS_SHOWN:
        return {}
    try:
        by_region: list[list[float]] = matrix.array.tolist()
    except UsageError:
        return {}
    if len(regions) > 1:
        columns = [(f"region {number}", row) for number, row in enumerate(by_region, 1)]
        order = [*range(len(texts))]
    else:
        people = [_list(one) for one in _list(_map(sample.target).get(HUMAN_RATINGS))]
        rated = [one for one in people if len(one) == len(texts) and all(type(each) in {int, float} for each in one)]
        columns = [("score", by_region[0]), *((f"rater {number}", one) for number, one in enumerate(rated, 1))]
        order = sorted(range(len(texts)), key=lambda place: -by_region[0][place])
    true = _true_cells(sample, len(regions), len(texts))
    rows = [
        {
            "text": shortened(plain(texts[place]), _LONGEST),
            "numbers": [numbers[place] for _, numbers in columns],
            **({"true": true[place]} if place in true else {}),
        }
        for place in order
    ]
    return {"table": {"columns": [name for name, _ in columns], "rows": rows}}


def _true_cells(sample: Sample, regions: int, texts: int) -> Mapping[int, Sequence[int]]:
    """By inference that is true of a region, the columns of these, as the targets of tasks over regions say it."""
    target = _map(sample.target)
    if regions == 1 and type(target.get("place")) is int:
        return {target["place"]: [0]}
    if len(_list(target.get("ids"))) == regions == texts:
        return {place: [place] for place in range(texts)}
    return {place: _list(right) for place, right in enumerate(_list(target.get("right")))}


def _link(name: str, link: JsonObject, meta: Mapping[str, Any]) -> JsonObject:
    failed = meta.get("failed", {}).get(name)
    fields = {field: value for field, value in link.items() if field not in {"value", "trace"}}
    return {"name": name, **fields, **({} if failed is None else {"failed": failed})}


def _verbalization(prediction: Prediction) -> JsonObject:
    """The values of the links that have no place of their own on the page."""
    line = {"verbalization": prediction.trace.get("verbalization"), "links": prediction.links}
    return {name: value for name, value in link_values(line).items() if name != "statement"}


def calls_of(part: RunPart, answer: SampleResult, browser: SampleBrowser) -> Mapping[str, JsonObject]:
    """The calls that an answer and its score rest on, by key; what is not in the folder is left out."""
    return {key: call_of(record, browser) for key, record in part.run.records.get_all(answer.keys).items()}


def call_of(record: Record, browser: SampleBrowser) -> JsonObject:
    """One call: to whom, every message and the reply in full, whatever else was asked, and the views that it shows."""
    request, response = dict(record.request), dict(record.response)
    form: JsonObject = {"kind": record.kind, "model": record.model, "at": record.at}
    if (dollars := browser.dollars(record)) is not None:
        form["dollars"] = dollars
    if record.kind != "chat":
        shown = [number for each in image_forms(record) for number in browser.numbers(each)]
        views = {"views": shown} if shown else {}
        return {**form, **views, "request": _short(request), "response": _short(response)}
    messages: list[Any] = request.pop("messages", [])
    request.pop("model", None)
    form["messages"] = [_message(message, browser) for message in messages]
    form["reply"] = response
    return {**form, "asked": request} if request else form


def _message(message: Mapping[str, Any], browser: SampleBrowser) -> JsonObject:
    parts = [part.get("text", _part(part, browser)) for part in message.get("parts", ())]
    others = {name: value for name, value in message.items() if name not in {"role", "parts"}}
    return {"role": message.get("role"), "parts": parts, **({"rest": others} if others else {})}


def _part(part: Mapping[str, Any], browser: SampleBrowser) -> JsonObject:
    views = browser.numbers(part) if "view" in part else []
    return {"part": part, **({"views": views} if views else {})}


def _short(form: Mapping[str, Any]) -> JsonObject:
    """`form` with long lists of numbers cut, such as vectors."""
    return {name: _cut(value) for name, value in form.items()}


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > 4000:
        return f"{value[:200]}… ({len(value):,} characters)"
    if isinstance(value, list) and len(cast("list[Any]", value)) > 64:
        several = cast("list[Any]", value)
        return [*several[:8], f"… {len(several):,} in all"]
    return cast("Any", value)


# --- rows ---

_SORTS: Mapping[str, str] = {"slow": "seconds", "cost": "cost", "tokens": "tokens", "tries": "again"}


def index_of(parts: Sequence[RunPart], browser: SampleBrowser) -> JsonObject:
    """What the script reads first: every row of every run."""
    runs: list[JsonObject] = []
    for part in parts:
        marks = {} if part.blames is None else part.blames.filters()
        rows = [
            {
                **row.form(),
                "picture": browser.number(row.picture),
                **({"blame": blamed} if (blamed := marks.get((row.id, row.epoch))) else {}),
            }
            for row in part.rows
        ]
        runs.append({"name": part.name, "share": part.share, "rows": rows})
    return {"runs": runs, "words": dict(RESULTS), "sorts": _sorts(runs)}


def _sorts(runs: Sequence[JsonObject]) -> list[str]:
    rows = [row for run in runs for row in run["rows"]]
    fields = [name for name, field in _SORTS.items() if any(row[field] for row in rows)]
    ranked = ["worst", "best"] if any(row["worth"] is not None for row in rows) else []
    return ["order", *ranked, *fields]


# --- blame ---


def detail_of_blame(part: BlamePart, answer: SampleResult) -> JsonObject | None:
    """What was tried on one answer, as JSON for the page; None where nothing was.

    Of every trial it says what stood in the link's place, which links became otherwise for it, and the new answer.
    """
    place = (answer.sample.id, answer.epoch)
    culprits = part.answers.get(place)
    if culprits is None or not culprits.tried:
        return None
    options = options_of(answer.sample)
    trials = [
        {
            "link": link,
            "worth": worth,
            "flips": link in culprits.flips,
            "guilty": link in culprits.guilty,
            **_trial(part.trials.get(place, {}).get(link, {}), answer, link=link, options=options),
        }
        for link, worth in culprits.tried.items()
    ]
    return {"words": part.words, "metric": part.metric, "was": culprits.worth, "trials": trials}


def _trial(line: Mapping[str, Any], answer: SampleResult, *, link: str, options: Sequence[str]) -> JsonObject:
    if not line:
        return {}
    value = line.get("value")
    chosen = places_in(value, options) if value is not None else None
    was = answer.prediction
    now, before = _texts_by_link(line.get("trace"), line.get("links")), _texts_by_link(was.trace, was.links)
    became = {name: text for name, text in now.items() if name != link and text != before.get(name)}
    form: JsonObject = {
        "outcome": str(line.get("outcome")),
        "reason": line.get("reason"),
        "put": _link_text(link, line.get("put")),
        "chosen": chosen,
        "value": value if chosen is None else None,
        "became": became,
        "calls": sum(len(_map(each).get("calls", ())) for each in _map(line.get("links")).values()),
    }
    return {name: each for name, each in form.items() if each not in (None, {}, [])}


def _texts_by_link(trace: Any, links: Any) -> dict[str, str]:
    """What each link of a prediction says, as text."""
    traced = _map(trace)
    form = {"verbalization": _map(traced.get("verbalization")), "statement": traced.get("statement")}
    forms = {name: _map(each) for name, each in _map(links).items()}
    texts = {name: _link_text(name, value) for name, value in link_values({**form, "links": forms}).items()}
    return {name: text for name, text in texts.items() if text is not None}


def _link_text(link: str, value: Any) -> str | None:
    if value is None:
        return None
    if link == "statement" and isinstance(value, dict):
        value = _statement(cast("dict[str, Any]", value))
    elif isinstance(value, list):
        value = "\n".join(plain(each) for each in cast("list[Any]", value))
    return shortened(plain(value), _LONGEST)


def _statement(form: Mapping[str, Any]) -> Any:
    try:
        return Statement(form["relation"], form["primary"], form["secondary"]).text
    except (KeyError, TypeError, ValueError, UsageError):
        return form.get("text", dict(form))


def _map(value: Any) -> dict[str, Any]:
    """`value` where it is a map, else an empty one: anybody may have written the file."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    """`value` where it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []
