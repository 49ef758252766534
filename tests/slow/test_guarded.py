"""What a real server refuses ends as one clear message or a named outcome: the key, the model, the picture."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slow.commands import Place, Ran
from tests.slow.conftest import KEY
from tests.slow.servers import Server

pytestmark = [pytest.mark.slow(group="servers"), pytest.mark.xdist_group("guarded")]

SETTINGS = """\
[models.text]
spec = "openai:smollm2-135m@{url}"
temperature = 0
max_tokens = 40
key_variable = "GUARDED"

[models.keyless]
spec = "openai:smollm2-135m@{url}"

[models.unknown]
spec = "openai:no-such-model@{url}"
key_variable = "GUARDED"
"""


@pytest.fixture(scope="module")
def place(guarded: Server, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A user's folder beside the server."""
    return Place.make(tmp_path_factory.mktemp("guarded") / "work", photos, SETTINGS.format(url=guarded.url))


def verbalize(place: Place, model: str, **variables: str) -> Ran:
    return place.run("run", "verbalize", "photos/coffee.png", "--vlm", model, "--json", **variables)


@pytest.mark.parametrize(
    ("model", "variables", "said"),
    [
        pytest.param("keyless", {}, "key", id="no-key"),
        pytest.param("text", {"GUARDED": "wrong"}, "key", id="wrong-key"),
        pytest.param("unknown", {"GUARDED": KEY}, "no-such-model", id="unknown-model"),
    ],
)
def test_what_cannot_start_says_so_once(place: Place, model: str, variables: dict[str, str], said: str) -> None:
    ran = verbalize(place, model, **variables)
    assert (ran.code, ran.out) == (3, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_a_model_of_text_alone_fails_at_pictures(place: Place) -> None:
    ran = verbalize(place, "text", GUARDED=KEY)
    assert ran.code in {1, 3}
    assert "The model 'smollm2-135m' takes no images. Choose a vision-language model for --vlm." in " ".join(
        ran.err.split()
    )


def test_check_finds_no_images(place: Place) -> None:
    ran = place.run("models", "check", "text", "--refresh", GUARDED=KEY)
    assert ran.code == 0
    assert "images no" in " ".join(ran.out.split())


def test_the_key_is_recorded_nowhere(place: Place) -> None:
    verbalize(place, "text", GUARDED=KEY)
    files = [path for path in place.folder.rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
