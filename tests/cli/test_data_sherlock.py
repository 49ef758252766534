"""`askance data check sherlock`: what is said of a folder."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.command import Command
from tests.evals.sherlock import corpus

TOLD = """\
data

Files
  sherlock_val_with_split_idxs_v1_1.json.zip:sherlock_val_with_split_idxs_v1_1.json
  image_url2auto_bboxes.json.zip:image_url2auto_bboxes.json

Validation corpus, in which each id is the MD5 of its inputs
  instances              13  of 22,737 that are published
  instances of VG         8  of 13,194 that are published
  instances of VCR        5  of 9,543 that are published
  images                  5  of 6,656 that are published
  images of VG            3  of 3,740 that are published
  images of VCR           2  of 2,916 that are published
  pictures of VG          2  of 3,740 that are published
  pictures of VCR         2  of 2,916 that are published
  images with proposals   5  of 6,656 that are published

How sure annotators were
  possibly    3  of 4,221
  likely      6  of 11,504
  definitely  4  of 7,012

Chunks
  chunks  2  of 6 to 7 instances

Pairs of the leaderboard
  test comparison    12
  test localization  96
  test retrieval     85  in 2 chunks
  val comparison     12
  val localization   96
  val retrieval      85  in 2 chunks

To know
  2 inferences repeat another of the chunk word for word. Both get one score, so that neither is
  ever alone in the first place: P@1 of retrieval is at most 69.048.
  In 4 places an image has several instances in one chunk, so that another inference of the same
  image, which may be true as well, counts as wrong.
  1 inference repeats another of the image word for word: localization cannot tell their regions
  apart.
  1 image has one region twice, with different inferences:
  https://cs.stanford.edu/people/rak248/VG_100K_2/103.jpg.
  1 box of 14 runs past the edge of the image; what is shown of them is clipped to it.
  2 regions lie wholly outside the square in the middle of the image: an encoder that crops to it
  does not see them, and `frame=widescreen` sees most of them.
  1 image is longer than two squares side by side (1 of VCR), so that `frame=widescreen` misses the
  middle; 1 region lies there unseen.
  Of the 23 chunks 23 are missing or have another size than the published ones, so that figures of
  retrieval cannot be compared with those of others.
  Parts of the leaderboard with another number of pairs than published: test_comparison has 12 and
  not 4,719, test_localization has 96 and not 2,365,256, test_retrieval_0 has 49 and not 1,000,000
  ….

To mend
  1 image has no picture: https://cs.stanford.edu/people/rak248/VG_100K/102.jpg.
"""


def test_a_folder_is_told_for_a_person(askance: Command, own_place: Path) -> None:
    folder = corpus.write(own_place / "data")
    (folder / "images" / corpus.SCENES[1].path).unlink()

    done = askance("data", "check", "sherlock", "data")

    assert (done.code, done.out, done.err) == (1, TOLD, "")


def test_a_folder_is_told_as_json(askance: Command, own_place: Path) -> None:
    data = corpus.write(own_place / "data")

    done = askance("data", "check", "sherlock", "data", "--images", str(data / "images"), "--all-pairs", "--json")
    told = json.loads(done.out)

    assert done.code == 0
    assert (told["sound"], told["problems"], told["training"]) == (True, [], None)
    assert told["corpus"]["chunks"] == {"0": {"found": 7, "published": 983}, "1": {"found": 6, "published": 992}}
    assert told["pairs"]["val_retrieval_0"] == 49


def test_pictures_may_lie_elsewhere(askance: Command, own_place: Path) -> None:
    images = corpus.write(own_place / "data") / "images"
    images.rename(own_place / "pictures")

    whole = askance("data", "check", "sherlock", "data", "--images", "pictures")
    clips = askance("data", "check", "sherlock", "data", "--images", "pictures/vcr1images")

    assert (whole.code, clips.code) == (0, 1)
    assert "3 images have no picture" in clips.out
