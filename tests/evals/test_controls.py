"""Controls: every sample is shown another picture, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from askance.chat import ChatRequest
from askance.errors import UsageError
from askance.evals import Evaluation, Sample, evaluate
from askance.evals.controls import SWAPPED_NOTE, controlled, next_of, swapped_images
from askance.evals.pittads import ArrMulti
from askance.images import Image
from tests.evals.odd import Odd, write_pictures
from tests.evals.pittads.files import key_of, write_csv
from tests.evals.pittads.worlds import model, picture_of, requests_of, world
from tests.scripted import name_of, scripted


def digests(task: Evaluation) -> list[str]:
    return [sample.image.sha256 for sample in task.samples if sample.image is not None]


def task_of(folder: Path, **options: Any) -> Evaluation:
    asked: dict[str, Any] = {"data": world(folder, true=(3,) * 5), "vlm": model(), "context": "I", **options}
    return ArrMulti(**asked).evaluation()


@pytest.mark.parametrize("seed", range(5))
def test_nobody_keeps_the_own_picture(seed: int, tmp_path: Path) -> None:
    task = task_of(tmp_path)
    own, other = digests(task), digests(swapped_images(task, seed=seed))

    assert [one for one, two in zip(own, other, strict=True) if one == two] == []
    assert sorted(own) == sorted(other)


@pytest.mark.parametrize("count", [2, 3, 50])
def test_a_ring_leaves_nobody_in_place(count: int) -> None:
    names = [str(number) for number in range(count)]
    rings = [next_of(names, seed=seed) for seed in range(20)]

    assert all(ring[name] != name for ring in rings for name in names)
    assert all(sorted(ring.values()) == sorted(names) for ring in rings)
    assert count == 2 or len({tuple(ring.items()) for ring in rings}) > 1
    assert next_of(names[::-1], seed=1) == rings[1]


def test_all_else_stays(tmp_path: Path) -> None:
    task = task_of(tmp_path, orders=2)

    swapped = controlled(task, "swapped-image", seed=3)

    def rest(samples: Any) -> list[Sample]:
        return [replace(sample, image=None) for sample in samples]

    assert rest(swapped.samples) == rest(task.samples)
    assert swapped.options == {**task.options, "control": "swapped-image", "control_seed": 3}
    assert swapped.label == "scripted (I), swapped image"
    assert swapped.notes == (*task.notes, SWAPPED_NOTE)


def test_both_orders_of_an_ad_are_shown_one_picture(tmp_path: Path) -> None:
    swapped = swapped_images(task_of(tmp_path, orders=2))
    seen = digests(swapped)

    assert seen[0::2] == seen[1::2]


def test_equal_pictures_are_one_picture(tmp_path: Path) -> None:
    task = Odd(data=write_pictures(tmp_path, 3), vlm=scripted(), count=3).evaluation()
    one, two, three = task.samples
    twin = replace(three, image=Image.from_bytes((tmp_path / "00.png").read_bytes(), name="twin.png"))

    swapped = swapped_images(replace(task, samples=[one, two, twin]))

    assert digests(swapped) == [digests(task)[1], digests(task)[0], digests(task)[1]]


def test_given_links_are_dropped_and_asked_of_the_other_picture(tmp_path: Path) -> None:
    data, asked = world(tmp_path, true=(3, 3)), list[ChatRequest]()
    said = [[key_of(11), "A bottle."]]
    write_csv(tmp_path / "said" / "IN_LLAVA_description_ARR.csv", said, ("ID", "description"))
    vlm = requests_of(asked, choose_action_reasons={"answers": [1]})
    task = ArrMulti(data=data, vlm=vlm, context="IN", descriptions=tmp_path / "said").evaluation()

    evaluate(swapped_images(task), out=tmp_path / "run")
    pictures = [picture_of(request) for request in asked if name_of(request) == "narration"]

    assert [*task.samples[0].inputs] == ["narration", "options"]
    assert sorted(pictures) == sorted(digests(task))
    assert not any("A bottle." in request.messages[-1].text for request in asked)


def test_a_given_statement_goes_with_the_picture(tmp_path: Path) -> None:
    swapped = swapped_images(task_of(tmp_path, context="I+s_true"))

    assert [[*sample.inputs] for sample in swapped.samples] == [["options"]] * 5


def test_what_is_given_throughout_cannot_be_swapped(tmp_path: Path) -> None:
    data = world(tmp_path, true=(3, 3))
    said = [[key_of(11), "A bottle."], [key_of(12), "A jar."]]
    write_csv(tmp_path / "said" / "IN_LLAVA_description_ARR.csv", said, ("ID", "description"))
    task = ArrMulti(data=data, vlm=model(), context="IN", descriptions=tmp_path / "said").evaluation()

    with pytest.raises(UsageError, match="cannot be swapped: 'narration' is given with every sample"):
        swapped_images(task)


def test_without_pictures_nothing_can_be_swapped(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"5 samples have none, such as '1/11\.jpg'"):
        swapped_images(task_of(tmp_path, context="text-only"))


def test_one_picture_cannot_be_swapped(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="all have one picture"):
        swapped_images(task_of(tmp_path, limit=1))


def test_an_unknown_control_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        controlled(task_of(tmp_path), "no-image")

    assert str(refused.value) == "There is no control 'no-image'. There are swapped-image, swapped-region."
