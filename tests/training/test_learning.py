"""A proof that what is learnt comes from pictures: colour × shape, which a tiny CLIP learns, and its twins do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.images import Image
from askance.models.encoders.dual import DualEncoder
from askance.models.settings import Local
from askance.training import ChoiceExample, Fit, FitRecipe, TrainingSet, fit
from askance.training.objective import Control
from tests.training.colour_shapes import examples, make_set
from tests.training.conftest import Learner

pytest.importorskip("trl", reason="TRL is not installed; tests/slow/test_training.py runs this where it is")
pytestmark = pytest.mark.slow(group="training")

HELD_OUT = 200


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> TrainingSet:
    return make_set(tmp_path_factory.mktemp("drawn") / "set", "choices", train=1_000, validation=100)


async def right_share(folder: Path) -> float:
    """The share of held-out items of five choices that `clip:FOLDER` answers right."""
    encoder = DualEncoder(str(folder), local=Local(device="cpu", batch=32))
    right = 0
    for example in examples("choices", HELD_OUT, seed=77):
        assert isinstance(example, ChoiceExample)
        scores = await encoder.score(Image.from_bytes(example.image.data), example.choices)
        right += scores.index(max(scores)) == example.label
    return right / HELD_OUT


def trained(control: Control | None, drawn: TrainingSet, learner: Learner, out: Path) -> Path:
    """The recipe at a rate for weights that have learnt nothing yet; jitter would change the colours that are asked."""
    changes = {"rates": (1e-3,), "schedule": "cosine", "warmup": 20, "batch": 16, "epochs": 8, "augment": ()}
    recipe = FitRecipe.named("newyorker-clip", **changes)
    fit(Fit(recipe=recipe, data=drawn, base=f"clip:{learner('clip')}", control=control, device="cpu"), out)
    return out


async def test_it_learns_from_pictures(drawn: TrainingSet, learner: Learner, tmp_path: Path) -> None:
    before = await right_share(learner("clip"))

    after = await right_share(trained(None, drawn, learner, tmp_path / "seeing"))

    assert before < 0.4
    assert after > 0.9


# Of 200 items that are guessed one in five, more than 62 are right once in ten thousand times; and words may lean.
@pytest.mark.soak
@pytest.mark.parametrize("control", ["shuffled", "text-only"])
async def test_its_twins_stay_at_chance(control: Control, drawn: TrainingSet, learner: Learner, tmp_path: Path) -> None:
    assert await right_share(trained(control, drawn, learner, tmp_path / control)) < 0.35
