"""Made-up files in the shape of the raw ones: annotations, captions with ratings of three schemas, explanations."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from askance.evals.newyorker import RawContests

Row = dict[str, Any]
Votes = tuple[int, int, int]
"""Funny, somewhat funny, unfunny."""

WORDS = """
the a my your this that we they he she never always still really please honey doctor dog cat fish bear office
table chair window money lunch meeting wife husband lawyer judge captain island rope phone said told think
know want need love hate see hear look made took gave left found lost again today before after with without
under inside outside because if when where how why what who not no yes maybe only even
"""


def caption(draw: Random) -> str:
    """A caption of 3 to 16 words."""
    words = [draw.choice(WORDS.split()) for _ in range(draw.randint(3, 16))]
    return f"{' '.join(words).capitalize()}{draw.choice('..?!')}"


def captions(contest: int, count: int) -> list[str]:
    """Different captions of a contest."""
    draw, found = Random(f"captions {contest}"), dict[str, None]()
    while len(found) < count:
        found[caption(draw)] = None
    return list(found)


def record(contest: int, finalists: object) -> Row:
    """What the file of annotations has of one contest."""
    texts = [
        {
            "image_description": f"Person {number} describes cartoon {contest}.",
            "image_uncanny_description": f"Person {number} finds cartoon {contest} odd.",
            "question_1": "Why?",
            "question_2": None,
            "hash_worker_id": f"d{number}",
        }
        for number in range(3)
    ]
    places = [
        {
            "image_location": f"place {number} of {contest}",
            "link_1": "https://en.wikipedia.org/wiki/Duck",
            "link_2": f"https://en.wikipedia.org/wiki/Thing_{contest}",
            "link_3": None,
            "hash_worker_id": f"l{number}",
        }
        for number in range(2)
    ]
    return {
        "contest_number": contest,
        "contest_source": "bob",
        "contest_type": "bob_okay",
        "official_newyorker_finalists": finalists,
        "mturk_annotations": {"description_hit": texts, "link_hit": places},
    }


def finalists(contest: int) -> list[str]:
    """Three official finalists, in quotes of both kinds."""
    one, other, third = captions(-contest, 3)
    return [f"“{one}”", f'"{other}"', f"{third} "]


def write_annotations(path: Path, listed: Mapping[int, object]) -> Path:
    """The file of annotations, by contest the finalists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({str(contest): record(contest, each) for contest, each in listed.items()}), "utf-8")
    return path


def votes(place: int, count: int) -> Votes:
    """Votes of a caption that stands at a place of its ranking: each has a mean of its own."""
    return 2 * (count - place), count, 2 * count + place


def write_ratings(path: Path, contest: int, rows: Iterable[tuple[str, Votes]], *, schema: str = "v1") -> Path:
    """A file of ratings."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        names = "rank,funny,somewhat_funny,unfunny,count,score,precision,contest,caption"
        first = {"v0": "rank,caption,mean,precision,votes,not_funny,somewhat_funny,funny", "v1": names}
        writer.writerow(first.get(schema, f"target_id,{names}").split(","))
        for rank, (text, (funny, somewhat, unfunny)) in enumerate(rows, start=0 if schema == "v0" else 1):
            count = funny + somewhat + unfunny
            mean = (3 * funny + 2 * somewhat + unfunny) / count if count else 0.0
            if schema == "v0":
                writer.writerow([rank, text, mean, 0.1, count, unfunny, somewhat, funny])
            else:
                row = [rank, funny, somewhat, unfunny, count, mean, 0.1, contest, text]
                writer.writerow(row if schema == "v1" else [rank + 100, *row])
    return path


def rated(contest: int, count: int = 60) -> list[tuple[str, Votes]]:
    """The captions of a contest with votes, the best first."""
    return [(text, votes(place, count)) for place, text in enumerate(captions(contest, count))]


def raw_contests(
    folder: Path, *, official: Sequence[int], rated_ones: Sequence[int] = (), count: int = 60
) -> RawContests:
    """Contests with official finalists, some of them rated as well, or rated alone."""
    listed: dict[int, object] = {contest: finalists(contest) for contest in official}
    listed |= {contest: "UNKNOWN" for contest in rated_ones if contest not in listed}
    annotations = write_annotations(folder / "annotations.json", listed)
    (folder / "captions").mkdir(parents=True, exist_ok=True)
    (folder / "captions" / "900.txt").write_text("A caption of a contest that nobody described.\n", "utf-8")
    for place, contest in enumerate(rated_ones):
        schema = ("v0", "v1", "v2")[place % 3]
        write_ratings(folder / "captions" / f"{contest}_summary.csv", contest, rated(contest, count), schema=schema)
    return RawContests.open(annotations=annotations, captions=folder / "captions")
