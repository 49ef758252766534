from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askance.errors import BadData
from askance.evals.newyorker import CaptionFolder, clean_caption
from askance.evals.newyorker.crowd_ratings import ContestCaptions, CrowdVotes
from tests.evals.newyorker.raw_files import rated, write_ratings

CLEANED = {
    "“I'd kill for some cream cheese.”": "I'd kill for some cream cheese.",
    '"Bob just came directly from work."': "Bob just came directly from work.",
    "“Ouick! Your Pen!””": "Ouick! Your Pen!",
    '“"It\'s a little creepy."': "It's a little creepy.",
    '"When is it ever a good time to break up?': "When is it ever a good time to break up?",
    "‘No, no—you're the archeologist!\"": "No, no—you're the archeologist!",
    "“Just say ‘Pick a number.’ ”": "Just say 'Pick a number.'",
    '"A doormat with no door".': "A doormat with no door.",
    '“Stop saying, "KAPOW!" every time.”': 'Stop saying, "KAPOW!" every time.',
    'My shrink said "sole searching".': 'My shrink said "sole searching".',
    "'Amazon,' you said. 'So convenient,' you said.": "'Amazon,' you said. 'So convenient,' you said.",
    "“Neither  the time--nor the\nplace, Doug… ”": "Neither the time—nor the place, Doug...",
    "Lily pad . . . lily plant . . .": "Lily pad... lily plant...",
    'He won"t be smiling.': "He won't be smiling.",
    "'": "'",
    '""': "",
    "": "",
}


@pytest.mark.parametrize(("text", "cleaned"), CLEANED.items(), ids=map(repr, CLEANED))
def test_quotes_around_a_caption_are_gone_and_those_within_stay(text: str, cleaned: str) -> None:
    assert clean_caption(text) == cleaned


@given(st.text(alphabet="\"'“”‘’ ab.—-…\n", max_size=20))
def test_a_clean_caption_stays_as_it_is_and_stands_in_no_quotes(text: str) -> None:
    cleaned = clean_caption(text)

    assert clean_caption(cleaned) == cleaned
    assert not (len(cleaned) > 1 and cleaned[0] == cleaned[-1] == '"')
    assert not {*cleaned} & {*"“”‘’…\n"}


def read(folder: Path, contest: int = 510) -> ContestCaptions:
    return CaptionFolder.find(folder).read(contest)


@pytest.mark.parametrize("schema", ["v0", "v1", "v2"])
def test_every_schema_gives_the_same(schema: str, tmp_path: Path) -> None:
    write_ratings(tmp_path / "510_summary_LilUCB.csv", 510, rated(510), schema=schema)
    found = read(tmp_path)

    assert [each.text for each in found.captions] == sorted(text for text, _ in rated(510))
    by_text = {each.text: each.votes for each in found.captions}
    assert by_text == {
        text: CrowdVotes(funny=funny, somewhat_funny=somewhat, unfunny=unfunny)
        for text, (funny, somewhat, unfunny) in rated(510)
    }
    assert not found.left_out
    assert [*found.digests] == ["510_summary_LilUCB.csv"]


def test_votes_of_several_files_and_spellings_are_added_up(tmp_path: Path) -> None:
    write_ratings(tmp_path / "510_a.csv", 510, [("“Sit down.”", (1, 2, 3)), ("sit down!", (9, 0, 0))])
    write_ratings(tmp_path / "old" / "510_b.csv", 510, [("Sit\ndown.", (1, 0, 0))], schema="v0")
    (caption,) = read(tmp_path).captions

    assert caption.text == "sit down!"
    assert caption.votes == CrowdVotes(funny=11, somewhat_funny=2, unfunny=3)


def test_what_only_a_second_round_lists_is_the_best_alone(tmp_path: Path) -> None:
    write_ratings(tmp_path / "508-round1_summary_LilUCB.csv", 508, [("One.", (1, 1, 1)), ("Two.", (2, 1, 1))])
    write_ratings(tmp_path / "508-round2_summary_RoundRobin.csv", 508, [("Two.", (5, 1, 1)), ("Three.", (5, 1, 1))])
    found = {each.text: (each.best_alone, each.votes and each.votes.count) for each in read(tmp_path, 508).captions}

    assert found == {"One.": (False, 3), "Two.": (False, 11), "Three.": (True, 7)}


HEAD = "rank,funny,somewhat_funny,unfunny,count,score,precision,contest,caption\n"
ROWS = {
    "1,1,1,1,3,2.5,0,510,Wrong mean.": "votes that do not give the mean beside them",
    "1,1,1,1,4,2.0,0,510,Wrong count.": "votes that do not add up",
    "1,-1,1,1,1,2.0,0,510,Less than none.": "votes that do not add up",
    "1,0,0,0,0,0,0,510,Nobody asked.": "no votes",
    "1,x,0,0,0,0,0,510,No number.": "votes that are no numbers",
    "1,,0,0,0,0,0,510,Empty cell.": "votes that are no numbers",
    '1,1,1,1,3,2.0,0,510,""""""': "no caption",
    f"1,1,1,1,3,2.0,0,510,{'word ' * 201}": "a caption of more than 1,000 characters",
}


@pytest.mark.parametrize(("row", "reason"), ROWS.items(), ids=[row[:40] for row in ROWS])
def test_a_row_that_cannot_be_used_is_counted(row: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "510_x.csv").write_text(f"{HEAD}1,1,1,1,3,2.0,0,510,Sound.\n{row}\n", "utf-8")
    found = read(tmp_path)

    assert [each.text for each in found.captions] == ["Sound."]
    assert found.left_out == {reason: 1}


def test_lists_without_votes_are_read(tmp_path: Path) -> None:
    (tmp_path / "0012.txt").write_text("First, with a comma.\n\n“Second.”\n", "utf-8")
    (tmp_path / "12_more.csv").write_text("caption\nThird.\n", "utf-8")
    (tmp_path / "artists.csv").write_text("name\nX\n", "utf-8")
    folder = CaptionFolder.find(tmp_path)

    assert folder.nameless == ("artists.csv",)
    assert [(each.text, each.votes) for each in folder.read(12).captions] == [
        ("First, with a comma.", None),
        ("Second.", None),
        ("Third.", None),
    ]


BROKEN = {
    "another contest": (f"{HEAD}1,1,1,1,3,2.0,0,511,Elsewhere.\n", "the row is about contest '511'"),
    "no captions": ("rank,score\n1,2\n", "no column 'caption'"),
    "cut off": (f'{HEAD}1,1,1,1,3,2.0,0,510,"Cut', "ends within a quoted field"),
    "too many fields": (f"{HEAD}1,1,1,1,3,2.0,0,510,Well, well\n", "10 fields, and the first line names 9"),
    "no row": (HEAD, "no row"),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_a_file_that_cannot_be_read_says_why(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "510_x.csv").write_text(text, "utf-8")
    with pytest.raises(BadData, match=message):
        read(tmp_path)


def test_a_folder_without_captions_says_what_it_should_hold(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="no file of captions"):
        CaptionFolder.find(tmp_path)
    with pytest.raises(BadData, match="There is no folder"):
        CaptionFolder.find(tmp_path / "gone")


def test_one_file_in_two_folders_is_refused_and_not_counted_twice(tmp_path: Path) -> None:
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "12.txt").write_text("A caption.\n", encoding="utf-8")
    with pytest.raises(BadData, match=r"'12\.txt'.*count twice"):
        CaptionFolder.find(tmp_path)
