"""A made-up data set of the shapes that Sherlock's has: five images in two chunks, the leaderboard, pictures.

Each region is painted in a colour of its own. What is true of it: `SEA` stands twice in chunk 0, and `DOG` twice in
chunk 1 at one image, which has one region twice; one box runs a pixel past the edge; the wide image has a region that
no square at either end shows; of comparison the first candidate is the most plausible to both raters.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from typing import Any

from PIL import Image as Pillow
from PIL import ImageDraw

VG, VCR = "https://cs.stanford.edu/people/rak248/", "http://s3-us-west-2.amazonaws.com/ai2-rowanz/"
Row = dict[str, Any]
Edges = tuple[int, int, int, int]
"""Left, top, width and height, as in the files."""

CORPUS = "sherlock_val_with_split_idxs_v1_1.json"
PROPOSALS = "image_url2auto_bboxes.json"
SEA, DOG = "the sea is near", "they own a dog"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """An image, and of each instance its chunk, boxes, clue, inference and confidence."""

    url: str
    size: tuple[int, int]
    regions: tuple[tuple[int, tuple[Edges, ...], str, str, float], ...]

    @property
    def path(self) -> str:
        """Where its picture lies below a folder of pictures."""
        return "/".join(self.url.split("/")[-2 if "VG_" in self.url else -3 :])


SCENES = (
    Scene(
        url=f"{VG}VG_100K/101.jpg",
        size=(60, 40),
        regions=(
            (0, ((4, 4, 16, 12),), "a red bucket", SEA, 2.0),
            (0, ((30, 10, 20, 20),), "a boy with a net", "the boy is hunting crabs", 3.0),
            (1, ((10, 24, 12, 10), (40, 30, 10, 8)), "two sandals", "people are on holiday", 1.0),
        ),
    ),
    Scene(
        url=f"{VG}VG_100K/102.jpg",
        size=(60, 40),
        regions=(
            (0, ((2, 2, 20, 20),), "a gull on a post", SEA, 3.0),
            (0, ((41, 21, 20, 16),), "a rusty chain", "the pier is old", 2.0),  # a pixel past the right edge
        ),
    ),
    Scene(
        url=f"{VG}VG_100K_2/103.jpg",
        size=(40, 60),
        regions=(
            (1, ((4, 30, 20, 20),), "a bowl on the floor", DOG, 2.0),
            (1, ((4, 30, 20, 20),), "a worn leash", DOG, 1.0),
            (0, ((10, 4, 20, 16),), "a clock at noon", "it is time for lunch", 3.0),
        ),
    ),
    Scene(
        url=f"{VCR}vcr1images/movieclips_Night/a@1.jpg",
        size=(120, 40),
        regions=(
            (0, ((50, 10, 16, 16),), "a raised glass", "they celebrate something", 2.0),  # between both squares
            (1, ((2, 2, 24, 30),), "a man in uniform", "he is on duty", 3.0),
            (1, ((90, 6, 24, 30),), "a woman with a suitcase", "she leaves for good", 1.0),
        ),
    ),
    Scene(
        url=f"{VCR}vcr1images/lsmdc_0001_Day/b@2.jpg",
        size=(60, 40),
        regions=(
            (1, ((6, 6, 20, 20),), "candles on a cake", "somebody has a birthday", 2.0),
            (0, ((34, 14, 20, 20),), "torn paper", "the presents are opened", 2.0),
        ),
    ),
)

COLOURS = (
    "#e6194b",
    "#3cb44b",
    "#4363d8",
    "#ffe119",
    "#f58231",
    "#911eb4",
    "#46f0f0",
    "#f032e6",
    "#bcf60c",
    "#fabebe",
    "#008080",
    "#9a6324",
    "#800000",
)
CHUNKS = (0, 1)
RATINGS = ((3, 3), (2, 3), (1, 2), (1, 1))
"""Of the candidates of a rated region, in the order of the answers."""


def forms(edges: Sequence[Edges]) -> list[dict[str, int]]:
    """Boxes as the files have them."""
    return [{"left": left, "top": top, "width": width, "height": height} for left, top, width, height in edges]


def sealed(inputs: Row, inference: str, chunk: int | None) -> Row:
    """A row of the corpus, with the id of its inputs."""
    name = md5(json.dumps(inputs, sort_keys=True).encode(), usedforsecurity=False).hexdigest()
    row = {"inputs": inputs, "targets": {"inference": inference}, "instance_id": name}
    return row if chunk is None else {**row, "split_idx": chunk}


def rows() -> list[Row]:
    """The rows of the validation corpus, sorted by chunk."""
    made = list[Row]()
    for scene in SCENES:
        width, height = scene.size
        image = {"url": scene.url, "width": width, "height": height}
        for place, (chunk, boxes, clue, inference, confidence) in enumerate(scene.regions):
            inputs = {
                "image": image,
                "bboxes": forms(boxes),
                "clue": clue,
                "confidence": confidence,
                "obs_idx": place,
            }
            made.append(sealed(inputs, inference, chunk))
    return sorted(made, key=lambda row: row["split_idx"])


def proposals() -> dict[str, list[dict[str, int]]]:
    """By image: of each region a box that is a little off, then two that are wrong."""
    by_url: dict[str, list[dict[str, int]]] = {}
    for scene in SCENES:
        near = [(boxes[0][0] + 1, boxes[0][1], *boxes[0][2:]) for _, boxes, *_ in scene.regions]
        off = [(left, top, min(width, scene.size[0] - left), height) for left, top, width, height in near]
        by_url[scene.url] = forms([*off, (0, 0, 3, 3), (0, 0, *scene.size)])
    return by_url


def _id(*parts: object) -> str:
    return md5(json.dumps(parts).encode(), usedforsecurity=False).hexdigest()


def _pair(task: str, row: Row, boxes: list[dict[str, int]], inference: str, test_id: str) -> Row:
    return {
        "image": row["inputs"]["image"],
        "region": boxes,
        "inference": inference,
        "test_id": test_id,
        "extra_info": {"task": task},
    }


def comparison(split: str) -> tuple[list[Row], Row]:
    """The instances of comparison and their answers: three regions with four candidates each."""
    known = rows()
    instances, ids, annotations = list[Row](), dict[str, Row](), list[Row]()
    for row in known[:3]:
        others = [other for other in known if other["inputs"]["image"] != row["inputs"]["image"]]
        candidates = list[Row]()
        for other, (first, second) in zip(others[: len(RATINGS)], RATINGS, strict=True):
            test_id = _id(split, "comparison", row["instance_id"], other["instance_id"])
            boxes, text = row["inputs"]["bboxes"], other["targets"]["inference"]
            instances.append(_pair("comparison", row, boxes, text, test_id))
            ids[test_id] = {"Input_iid": row["instance_id"], "candidate": other["instance_id"]}
            candidates.append({"source_iid": other["instance_id"], "annot1": first, "annot2": second})
        annotations.append({"Input_iid": row["instance_id"], "candidates": candidates})
    return instances, {"test_id_map": ids, "annotations": annotations}


def localization(split: str) -> tuple[list[Row], Row]:
    """The instances of localization and their answers: regions of people, then proposals, of each image."""
    instances, answers = list[Row](), dict[str, Row]()
    for scene in SCENES:
        group = [row for row in rows() if row["inputs"]["image"]["url"] == scene.url]
        for row in group:
            for place, other in enumerate(group):
                test_id = _id(split, "gt", row["instance_id"], place)
                boxes, text = other["inputs"]["bboxes"], row["targets"]["inference"]
                instances.append(_pair("localization", row, boxes, text, test_id))
                answers[test_id] = {
                    "type": "gt",
                    "image": scene.url,
                    "inst_id": row["instance_id"],
                    "bbox_idx": place,
                    "correct": row is other,
                }
            for place, box in enumerate(proposals()[scene.url]):
                test_id = _id(split, "auto", row["instance_id"], place)
                instances.append(_pair("localization", row, [box], row["targets"]["inference"], test_id))
                overlap = max(_iou(box, true) for true in row["inputs"]["bboxes"])
                answers[test_id] = {
                    "type": "auto",
                    "image": scene.url,
                    "inst_id": row["instance_id"],
                    "bbox_idx": place,
                    "IoU": overlap,
                }
    return instances, answers


def retrieval(split: str, chunk: int) -> tuple[list[Row], dict[str, list[str]]]:
    """The instances of retrieval in one chunk and their answers: each region with each inference."""
    group = [row for row in rows() if row["split_idx"] == chunk]
    instances, answers = list[Row](), dict[str, list[str]]()
    for row in group:
        for other in group:
            test_id = _id(split, "retrieval", row["instance_id"], other["instance_id"])
            boxes, text = row["inputs"]["bboxes"], other["targets"]["inference"]
            instances.append(_pair("retrieval", row, boxes, text, test_id))
            answers[test_id] = [row["instance_id"], other["instance_id"]]
    return instances, answers


def _iou(one: dict[str, int], other: dict[str, int]) -> float:
    across = min(one["left"] + one["width"], other["left"] + other["width"]) - max(one["left"], other["left"])
    down = min(one["top"] + one["height"], other["top"] + other["height"]) - max(one["top"], other["top"])
    shared = max(0, across) * max(0, down)
    return shared / (one["width"] * one["height"] + other["width"] * other["height"] - shared)


def write_json(path: Path, content: object) -> Path:
    """Writes a JSON file, or the `.zip` that holds one of its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(path.stem, text)
    else:
        path.write_text(text, encoding="utf-8")
    return path


def write_leaderboard(folder: Path, split: str) -> None:
    """The files of the leaderboard; those of the test set have no answers."""
    made: dict[str, tuple[list[Row], object]] = {
        "comparison": comparison(split),
        "localization": localization(split),
        **{f"retrieval_{chunk}": retrieval(split, chunk) for chunk in CHUNKS},
    }
    for name, (instances, answers) in made.items():
        home = folder / f"{split}_{name.partition('_')[0]}{'_public' * (split == 'test')}"
        write_json(home / f"{split}_{name}_instances.json", instances)
        write_json(home / f"{split}_{name}_instance_ids.json", sorted(row["test_id"] for row in instances))
        if split == "val":
            write_json(home / f"{split}_{name}_answer_key.json", answers)


def picture(scene: Scene) -> bytes:
    """The picture of an image, a JPEG: every region in its colour on grey."""
    drawn = Pillow.new("RGB", scene.size, "#777777")
    first = sum(len(each.regions) for each in SCENES[: SCENES.index(scene)])
    for place, (_, boxes, *_) in enumerate(scene.regions):
        for left, top, width, height in boxes:
            colour = COLOURS[(first + place) % len(COLOURS)]
            ImageDraw.Draw(drawn).rectangle((left, top, left + width - 1, top + height - 1), fill=colour)
    stream = io.BytesIO()
    drawn.save(stream, "JPEG", quality=95)
    return stream.getvalue()


def write_pictures(folder: Path) -> Path:
    """The pictures, as Visual Genome and VCR are unpacked."""
    for scene in SCENES:
        path = folder / scene.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(scene))
    return folder


def write(folder: Path) -> Path:
    """The whole data set: corpus, both splits of the leaderboard, proposals, and pictures in `images`."""
    write_json(folder / f"{CORPUS}.zip", rows())
    write_json(folder / f"{PROPOSALS}.zip", proposals())
    for split in ("val", "test"):
        write_leaderboard(folder / "leaderboard_eval", split)
    write_pictures(folder / "images")
    return folder
