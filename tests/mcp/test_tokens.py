"""Files of tokens, and whose a token is."""

from __future__ import annotations

from pathlib import Path

import pytest

from askance.errors import UsageError
from askance.mcp import Tokens

ANN, BOB = "a" * 32, "b" * 32


def written(folder: Path, text: str, *, mode: int = 0o600) -> Path:
    file = folder / "tokens"
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return file


def test_a_client_is_known_by_its_whole_token_alone(tmp_path: Path) -> None:
    tokens = Tokens.read(written(tmp_path, f"# the team\nann {ANN}\n\nbob  {BOB}\n"))

    assert tokens.names == ("ann", "bob")
    assert [tokens.client_of(each) for each in (ANN, BOB, ANN[:-1], f"{ANN}a", "", "ann", "\ud800")] == [
        *("ann", "bob"),
        *[None] * 5,
    ]
    assert ANN not in repr(vars(tokens))


def test_a_token_that_is_made_is_another_each_time() -> None:
    (first, one), (_, two) = Tokens.made(), Tokens.made()

    assert (first.client_of(one), first.client_of(two)) == ("client", None)
    assert len(one) >= 40


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "There is no token"),
        ("ann", "Line 1 of"),
        ("ann short", "Line 1 of"),
        (f"ann {ANN}\nann {BOB}", "Line 2 of"),
        (f"a/b {ANN}", "Line 1 of"),
        (f"ann {ANN}\nbob {ANN}", "Two clients have one token"),
    ],
)
def test_a_file_that_names_nobody_for_sure_is_refused_without_its_tokens(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        Tokens.read(written(tmp_path, text))

    assert ANN not in str(refused.value)


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Others can read the tokens .* chmod 600"):
        Tokens.read(written(tmp_path, f"ann {ANN}", mode=0o644))
