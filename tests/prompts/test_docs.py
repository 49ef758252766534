from __future__ import annotations

import re
from pathlib import Path

from askance.prompts import PromptLibrary, fence

PAGE = (Path(__file__).parents[2] / "docs" / "prompts.md").read_text("utf-8")


def test_the_prompt_on_the_page_works(overlay: Path) -> None:
    example = re.search(r"```\n(---\n.*?)```", PAGE, re.DOTALL)
    assert example is not None
    (overlay / "haiku.text.prompt").write_text(example[1], "utf-8")
    library = PromptLibrary([overlay])

    assert [problem.level for problem in library.check()] == ["note"]
    assert library.find("haiku", form="text").render(narration="A cup.", words=["brick", "red"])[1].text == (
        f"{fence('A cup.', 'narration')}\nUse these words:\n1. brick\n2. red\nWrite 3 lines."
    )


def test_the_fence_on_the_page_is_real() -> None:
    assert fence("Light as a feather", "scene text") in PAGE
