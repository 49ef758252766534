"""Thumbnails: found by what they are, small enough for all, beside the page or in it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image as Pillow

from askance.evals import Run, evaluate
from askance.evals.report import Thumbnails, build_report, report_page
from askance.evals.report.html import write_page
from tests.evals.odd import Odd, chooser, write_pictures
from tests.evals.report.runs import Parsed


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return evaluate(Odd(data=write_pictures(tmp_path / "data"), vlm=chooser(2)), out=tmp_path / "run")


def test_pictures_are_found_by_their_digest_whatever_they_are_called(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other" / "below").mkdir(parents=True)
    for number, file in enumerate(sorted((tmp_path / "data").iterdir())):
        file.rename(tmp_path / "other" / "below" / f"renamed-{number}.png")
    (tmp_path / "other" / "00.png").write_bytes(b"no picture of the run, but one by name")
    images = (answer.sample.image for answer in run.answers)
    wanted = dict.fromkeys(image.sha256 for image in images if image is not None)

    found = Thumbnails.of(build_report([run]).runs, [tmp_path / "other"])

    assert list(found.jpegs) == list(wanted)
    assert (found.missing, found.left_out, found.notes) == (0, 0, ())


def test_thumbnails_are_jpegs_no_larger_than_they_say(run: Run, tmp_path: Path) -> None:
    found = Thumbnails.of(build_report([run]).runs, [tmp_path / "data"], megabytes=0.01)

    sizes = [Pillow.open(io.BytesIO(data)) for data in found.jpegs.values()]
    assert {each.format for each in sizes} == {"JPEG"}
    assert max(max(each.size) for each in sizes) <= found.side
    assert sum(map(len, found.jpegs.values())) * 4 / 3 <= 0.01e6


def test_what_has_no_room_or_is_not_there_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data" / "03.png").unlink()

    found = Thumbnails.of(build_report([run]).runs, [tmp_path / "data"], megabytes=0.0015)

    assert found.missing == 1
    assert 0 < found.left_out == 5 - len(found.jpegs)
    assert found.notes == (
        "pictures not found, or not readable: 1",
        f"pictures for which there was no room: {found.left_out} (`--images-mb` makes more)",
    )


def test_rows_refer_to_pictures_within_the_page(run: Run, tmp_path: Path) -> None:
    report = build_report([run])
    parsed = Parsed(report_page(report, pictures=Thumbnails.of(report.runs, [tmp_path / "data"])))

    uris = parsed.data("pictures-0")
    assert [row["picture"] for row in parsed.data("index")["runs"][0]["rows"]] == list(range(6))
    assert all(uri.startswith("data:image/jpeg;base64,/9j/") for uri in uris)


def test_pictures_beside_the_page_are_files(run: Run, tmp_path: Path) -> None:
    report, out = build_report([run]), tmp_path / "out #1" / "a b.html"
    pictures = Thumbnails.of(report.runs, [tmp_path / "data"])

    write_page(out, lambda files: report_page(report, pictures=pictures, files=files), beside=pictures.jpegs)

    files = Parsed(out.read_text(encoding="utf-8")).data("index")["files"]
    digest = next(iter(pictures.jpegs))
    assert files[0] == f"a%20b_files/{digest[:32]}.jpg"
    assert (out.parent / "a b_files" / f"{digest[:32]}.jpg").read_bytes() == pictures.jpegs[digest]
