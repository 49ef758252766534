from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from askance.errors import PromptError
from askance.prompts import PromptLibrary, overlay_prompts
from askance.prompts.library import PACKAGED

from .conftest import Write

FILES = [
    "unusual.text.vicuna.prompt",
    "unusual.text.prompt",
    "unusual.prompt",
    "unusual.json.prompt",
]


@pytest.mark.parametrize(
    ("present", "form", "family", "found"),
    [
        pytest.param(FILES, "text", "vicuna", "unusual.text.vicuna.prompt", id="family first"),
        pytest.param(FILES, "text", "llava", "unusual.text.prompt", id="another family"),
        pytest.param(FILES, "text", None, "unusual.text.prompt", id="no family"),
        pytest.param(["unusual.prompt"], "text", "vicuna", "unusual.prompt", id="any form, family asked for"),
        pytest.param(["unusual.prompt"], "json", None, "unusual.prompt", id="any form"),
    ],
)
def test_a_users_file_is_found(
    present: list[str], form: str, family: str | None, found: str, write: Write, overlay: Path
) -> None:
    for file in present:
        write(f"user:\n{file}\n", file=file)
    prompt = PromptLibrary([overlay]).find("unusual", form="text" if form == "text" else "json", family=family)

    assert prompt.path == overlay / found
    assert prompt.render()[0].text == found


def test_any_file_of_the_users_wins_over_every_variant_of_the_packages(write: Write, overlay: Path) -> None:
    name = "detect_statement"
    assert (PACKAGED / f"{name}.text.vicuna.prompt").exists()
    path = write("user:\nHi\n", file=f"{name}.text.prompt")

    assert PromptLibrary([overlay]).find(name, form="text", family="vicuna").path == path


def test_a_users_file_for_another_form_does_not_count(write: Write, overlay: Path) -> None:
    write("user:\nHi\n", file="unusual.json.prompt")

    assert PromptLibrary([overlay]).find("unusual", form="text").path == PACKAGED / "unusual.text.prompt"


def test_the_first_overlay_wins_even_with_a_less_special_file(tmp_path: Path, write: Write, overlay: Path) -> None:
    special = write("user:\nHi\n", file="unusual.text.vicuna.prompt")
    first = tmp_path / "first"
    first.mkdir()
    plain = first / "unusual.prompt"
    plain.write_bytes(special.read_bytes())

    assert PromptLibrary([first, overlay]).find("unusual", form="text", family="vicuna").path == plain
    assert PromptLibrary([overlay, first]).find("unusual", form="text", family="vicuna").path == special


def test_the_packages_variant_for_a_family_is_found() -> None:
    library = PromptLibrary([])

    assert library.find("detect_statement", form="text", family="vicuna").family == "vicuna"
    assert library.find("detect_statement", form="text", family="qwen").family is None
    assert library.find("detect_statement", form="json", family="vicuna").family is None


def test_the_folder_prompts_is_the_overlay_where_none_is_named(
    write: Write, overlay: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("user:\nHi\n", file="unusual.prompt")
    monkeypatch.chdir(overlay.parent)

    assert PromptLibrary().find("unusual").render()[0].text == "Hi"
    assert not PromptLibrary([]).find("unusual").overlay


def test_without_that_folder_there_is_no_overlay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert PromptLibrary().overlays == ()


def test_an_overlay_that_is_named_must_exist(tmp_path: Path) -> None:
    folder = tmp_path / "nothing"

    with pytest.raises(PromptError) as caught:
        PromptLibrary([folder])

    assert str(caught.value) == f"There is no folder of prompts {str(folder)!r}. Make it, or name another."


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("unusal", "There is no prompt 'unusal'. Nearest: unusual."),
        (
            "choose_action",
            "There is no prompt 'choose_action'. Nearest: choose_caption, choose_action_reason, choose_explanation.",
        ),
        ("unusual.text", "There is no prompt 'unusual.text'. Nearest: unusual."),
    ],
)
def test_an_unknown_name_lists_the_nearest(name: str, message: str) -> None:
    with pytest.raises(PromptError) as caught:
        PromptLibrary([]).find(name)

    assert str(caught.value) == message


def test_a_name_like_no_other_lists_all() -> None:
    library = PromptLibrary([])

    with pytest.raises(PromptError) as caught:
        library.find("zzz")

    assert caught.value.hint == f"Nearest: {', '.join(library.names())}."


def test_a_name_never_leaves_the_folder(write: Write, overlay: Path) -> None:
    outside = write("user:\nHi\n", file="secret.json.prompt")
    outside.rename(overlay.parent / outside.name)

    with pytest.raises(PromptError, match=r"There is no prompt '\.\./secret'\."):
        PromptLibrary([overlay]).find("../secret")


def test_a_form_that_a_users_prompt_lacks_is_named(write: Write, overlay: Path) -> None:
    write("user:\nHi\n", file="mine.text.prompt")

    with pytest.raises(PromptError) as caught:
        PromptLibrary([overlay]).find("mine")

    assert str(caught.value) == "There is no prompt 'mine' in the form 'json'. Write `mine.json.prompt`."


def test_a_form_that_there_is_not_is_named() -> None:
    with pytest.raises(PromptError) as caught:
        PromptLibrary([]).find("unusual", form="xml")  # pyright: ignore[reportArgumentType]

    assert str(caught.value) == "There is no form 'xml' of a prompt. Forms: json, text."


def test_an_edited_file_is_read_again(write: Write, overlay: Path) -> None:
    library = PromptLibrary([overlay])
    write("user:\nOne\n", file="unusual.prompt")
    first = library.find("unusual")
    path = write("user:\nTwo\n", file="unusual.prompt")
    os.utime(path, ns=(1, 1))

    assert (first.render()[0].text, library.find("unusual").render()[0].text) == ("One", "Two")
    assert first.digest != library.find("unusual").digest


def test_an_edited_prompt_is_another_prompt_and_an_equal_one_is_the_same(write: Write, overlay: Path) -> None:
    library = PromptLibrary([overlay])
    path = write("user:\nOne\n", file="unusual.prompt")

    assert library.find("unusual") is library.find("unusual")
    assert library.find("unusual").path == path


def test_what_the_package_holds_untrusted_stays_so_in_a_users_file(write: Write, overlay: Path) -> None:
    inputs = "  description: {description: T_V.}\n  options: {description: Options., type: list, optional: true}\n"
    write("user:\n{{ description }}\n", file="detect_statement.text.prompt", inputs=inputs)

    with pytest.raises(PromptError, match="line 10: `description` is untrusted"):
        PromptLibrary([overlay]).find("detect_statement", form="text")


def test_a_user_may_say_otherwise(write: Write, overlay: Path) -> None:
    inputs = (
        "  description: {description: T_V., untrusted: false}\n"
        "  options: {description: Options., type: list, optional: true}\n"
    )
    write("user:\n{{ description }}\n", file="detect_statement.text.prompt", inputs=inputs)
    prompt = PromptLibrary([overlay]).find("detect_statement", form="text")

    assert prompt.render(description="as it is")[0].text == "as it is"


def test_the_library_gives_each_prompt_in_use_once(write: Write, overlay: Path) -> None:
    write("user:\nHi\n", file="unusual.prompt")
    write("user:\nHi\n", file="objects.text.prompt")
    write("user:\nHi\n", file="mine.json.llava.prompt")
    shown = [prompt.path for prompt in PromptLibrary([overlay])]
    package = [path for path in sorted(PACKAGED.glob("*.prompt")) if not path.name.startswith("unusual.")]

    assert set(shown) == {
        overlay / "unusual.prompt",
        overlay / "objects.text.prompt",
        overlay / "mine.json.llava.prompt",
        *(path for path in package if path.name != "objects.text.prompt"),
    }
    assert len(shown) == len(set(shown))


def test_names_are_sorted_and_the_users_among_them(write: Write, overlay: Path) -> None:
    write("user:\nHi\n", file="aaa.text.prompt")

    assert PromptLibrary([overlay]).names() == ("aaa", *PromptLibrary([]).names())


def test_a_prompt_is_ejected_for_editing(tmp_path: Path) -> None:
    library = PromptLibrary([])
    copy = library.eject("detect_statement", form="text", family="vicuna", to=tmp_path / "a" / "prompts")

    assert copy == tmp_path / "a" / "prompts" / "detect_statement.text.vicuna.prompt"
    assert copy.read_bytes() == (PACKAGED / copy.name).read_bytes()
    assert PromptLibrary([copy.parent]).find("detect_statement", form="text", family="vicuna").path == copy
    assert PromptLibrary([copy.parent]).check() == []


def test_ejecting_goes_to_the_first_overlay_or_the_folder_prompts(
    overlay: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PromptLibrary([overlay]).eject("unusual") == overlay / "unusual.json.prompt"
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert PromptLibrary().eject("unusual", form="text") == Path("prompts/unusual.text.prompt")


def test_ejecting_overwrites_nothing(write: Write, overlay: Path) -> None:
    path = write("user:\nHi\n", file="unusual.json.prompt")
    before = path.read_bytes()

    with pytest.raises(PromptError) as caught:
        PromptLibrary([overlay]).eject("unusual")

    assert str(caught.value) == f"{str(path)!r} exists already. Edit it, or remove it first."
    assert path.read_bytes() == before


def test_ejecting_where_no_folder_can_be_is_named(write: Write) -> None:
    path = write("user:\nHi\n")

    with pytest.raises(PromptError) as caught:
        PromptLibrary([]).eject("unusual", to=path)

    assert str(caught.value) == f"{str(path)!r} is not a folder. Name a folder."


def test_no_package_prompt_loads_the_schema_checker() -> None:
    script = (
        "import sys\nfrom askance.prompts import PromptLibrary\n"
        "library = PromptLibrary([])\nlibrary.find('unusual').render()\nprint('jinja2' in sys.modules)\n"
        "[prompt.render(**prompt.examples) for prompt in library]\nprint('jsonschema' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "False"]


def test_a_stretch_of_code_has_overlays_of_its_own(write: Write, overlay: Path) -> None:
    path = write("user:\nOdd?", file="unusual.json.prompt")
    with overlay_prompts(overlay):
        inside = PromptLibrary()

    assert inside.find("unusual").path == path
    assert PromptLibrary().find("unusual").path.is_relative_to(PACKAGED)
    with overlay_prompts():
        assert PromptLibrary().overlays == ()
