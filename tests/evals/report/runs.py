"""Runs for the tests of reports: small ones of known answers, and one in which every text means harm."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from zlib import decompress

from askance.chains import action_reason
from askance.chat import ChatRequest, ChatResponse, Usage
from askance.evals import ChainSolver, Evaluation, Prediction, Run, Sample, Score, Scorer, evaluate, mean
from askance.evals.pittads.dataset import Negatives
from askance.evals.report.html import environment
from askance.images import Image
from tests.evals.odd import write_pictures
from tests.evals.pittads import worlds

HOSTILE = (
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "'\"><svg/onload=document.title='owned'>",
    "<!--<script>",
    "]]><![CDATA[",
    "javascript:document.title='owned'",
    "</textarea></style></title><style>*{display:none}</style>",
    "\u202egnp.exe\u2066 \u2028 \u200b",
    "\x00\x1b[31mred\x07",
    "half \ud800 a pair",
    "👩‍👩‍👧 ${7*7} {{7*7}} &lt;b&gt; \\u003c",
    "long " + "A" * 100_000,
)
"""Texts that would do something if anything took them for more than text."""

Tags = Callable[[int], dict[str, str]]

RIGHT, WRONG = Score(values={"accuracy": 1.0}), Score(values={"accuracy": 0.0})


def _score(sample: Sample, value: Any) -> Score:
    right = value == sample.target
    return Score(values={"accuracy": float(right)}, notes={} if right else {"errors": {f"said {value}": 1}})


SCORING = Scorer(
    score=_score, metrics=(mean("accuracy"),), if_wrong=lambda _: WRONG, if_right=lambda _: RIGHT, notes=("Made up.",)
)


def plain_run(folder: Path, count: int = 12, *, shift: int = 0, label: str = "plain", tags: Tags = lambda _: {}) -> Run:
    """Free answers: of every five samples two are right, two are wrong and one has no answer.

    `tags` gives further tags of the sample of each number.
    """

    def solve(sample: Sample) -> Prediction:
        place = (int(sample.id.removeprefix("s")) + shift) % 5
        meta = {
            "calls": 1,
            "replayed": 0,
            "shared": 0,
            "seconds": 0.5,
            "tokens": {"input": 10, "output": 2},
            "cost": 0.01,
        }
        if place == 4:
            return Prediction(outcome="refused", reason="It would rather not.", meta=meta)
        return Prediction(outcome="answered", value="yes" if place < 2 else "no", meta=meta)

    samples = [
        Sample(
            id=f"s{number:04}",
            target="yes",
            group=f"g{number // 2}",
            tags={"half": "first" if number < count / 2 else "last", **tags(number)},
        )
        for number in range(count)
    ]
    task = Evaluation(
        samples=samples, solver=solve, scorer=SCORING, name="tests/plain", label=label, options={"shift": shift}
    )
    return evaluate(task, out=folder)


def copied(run: Run, count: int) -> Run:
    """The run with its samples over and over until there are so many, under other names."""
    for name in ("samples.jsonl", "scores.jsonl"):
        texts = (run.path / name).read_text(encoding="utf-8").splitlines()
        with (run.path / name).open("w", encoding="utf-8") as file:
            for number in range(count):
                line: dict[str, Any] = json.loads(texts[number % len(texts)])
                line["id"] = f"{line['id']}-{number // len(texts)}"
                if "sample" in line:
                    line["sample"] |= {"id": line["id"], "group": line["id"]}
                file.write(json.dumps(line) + "\n")
    return Run.open(run.path)


def chain_run(folder: Path, data: Path, *, negatives: Negatives = "easy", **answers: Any) -> Run:
    """The whole chain over made-up ads, answered by a script; `answers` change what it says."""
    from askance.evals.pittads.arr import ArrMulti

    chosen = worlds.choosing(worlds.is_wrong)
    model = worlds.model(**{"choose_action_reasons": chosen, **answers})
    return evaluate(ArrMulti(data=data, vlm=model, context="T_V+s_IN", negatives=negatives), out=folder)


def three_runs(folder: Path, data: Path) -> list[Run]:
    """The whole chain as it is, by another narration, and with bad choices."""
    worse = worlds.choosing(lambda text: not worlds.is_wrong(text))
    return [
        chain_run(folder / "a", data),
        chain_run(folder / "b", data, narration={"description": "NARRATED, but otherwise."}),
        chain_run(folder / "c", data, choose_action_reasons=worse),
    ]


def hostile_run(folder: Path, pictures: Path) -> Run:
    """The whole chain, where ids, options, targets, tags, names, labels, answers and notes mean harm."""
    write_pictures(pictures, len(HOSTILE))

    def says(field: str) -> worlds.Reply:
        return lambda request: _said(request, field)

    model = worlds.model(
        narration=says("description"),
        unusual=says("unusual"),
        combine=says("description"),
        scene_text={"lines": list(HOSTILE[:6])},
        objects={"objects": list(HOSTILE[:5])},
        choose_action_reasons={"answers": [2, 1]},
    )
    samples = [
        Sample(
            id=text[:300],
            image=Image.from_path(pictures / f"{number:02}.png", name=text[:300]),
            inputs={"options": [f"{text} right", f"{text} wrong", "neither"]},
            target=[1],
            tags={"tag": text[:300]},
        )
        for number, text in enumerate(HOSTILE)
    ]

    def score(sample: Sample, value: Any) -> Score:
        return Score(
            values={"accuracy": 0.0},
            notes={"errors": {HOSTILE[0]: 1}, "reason": sample.id, "judge": {"judge": HOSTILE[1]}},
        )

    scoring = Scorer(
        score=score, metrics=(mean("accuracy"),), if_wrong=lambda _: WRONG, if_right=lambda _: RIGHT, notes=HOSTILE[:3]
    )
    task = Evaluation(
        samples=samples,
        solver=ChainSolver(action_reason(vlm=model, llm=model)),
        scorer=scoring,
        name=f"tests/{HOSTILE[0]}",
        label=HOSTILE[1],
        options={"evil": HOSTILE[2]},
    )
    return evaluate(task, out=folder)


def _said(request: ChatRequest, field: str) -> ChatResponse:
    text = HOSTILE[int(request.key[:6], 16) % len(HOSTILE)]
    return ChatResponse(text=json.dumps({field: text}), thinking=text, usage=Usage(input=10, output=3))


def drawn(template: str, macro: str, *values: Any) -> Parsed:
    """What one macro of a template makes of its values."""
    module: Any = environment().get_template(template).module
    return Parsed(str(getattr(module, macro)(*values)))


class Parsed(HTMLParser):
    """A page as a browser takes it apart: its elements with their attributes, and what each script holds."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.code = ""
        self.style = ""
        self.words: list[str] = []
        self._inside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        self._inside = (attributes.get("id") or "code") if tag == "script" else "style" if tag == "style" else ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "code":
            self.code += data
        elif self._inside == "style":
            self.style += data
        elif self._inside:
            self.scripts[self._inside] = self.scripts.get(self._inside, "") + data
        else:
            self.words.append(data)

    def data(self, name: str) -> Any:
        """A block of JSON."""
        text = self.scripts[name]
        return json.loads(text if text[:1] in "[{" else decompress(b64decode(text, validate=True)))

    def samples(self, number: int = 0) -> tuple[list[Any], dict[str, Any]]:
        """What is known of the samples of a list, by their sides, and the calls of all of them."""
        blocks = [self.data(name) for name in self.scripts if name.startswith(f"d-{number}-")]
        samples = [sides for block in blocks for sides in block]
        calls = {key: call for sides in samples for side in sides for key, call in side["calls"].items()}
        return [[side["detail"] for side in sides] for sides in samples], calls

    @property
    def text(self) -> str:
        """What can be read without the script."""
        return re.sub(r"\s+", " ", " ".join(self.words))
