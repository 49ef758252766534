"""Cartoons and their captions: which caption was written for a cartoon, which is funnier, and what makes it funny.

These are the three tasks of *Do Androids Laugh at Electric Sheep?* (section 2). Each is asked from the picture, from a
description of it, or from nothing, which is a description that says so.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.agents.choose import LetterChooser
from askance.agents.explain import Reply
from askance.agents.picture_agent import PictureAgent, Subject
from askance.nodes import AnswerField, TextNode, Unreadable
from askance.nodes.answer import Words, text_field
from askance.nodes.reply import plain_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class CaptionMatcher(LetterChooser):
    """Chooses the caption that was written for a cartoon, among captions of other cartoons (matching)."""

    prompt = "match_caption"
    picture_prompt = "match_caption_from_picture"


class CaptionRanker(LetterChooser):
    """Chooses the funnier of two captions of a cartoon (quality ranking)."""

    prompt = "rank_captions"
    picture_prompt = "rank_captions_from_picture"


class Joke(Subject):
    """A cartoon and its caption."""

    caption: Words


class JokeExplainer(TextNode[Joke, Reply], PictureAgent[Joke, Reply]):
    """Explains in two or three sentences why a caption is funny under its cartoon (explanation)."""

    prompt = "explain_joke"
    picture_prompt = "explain_joke_from_picture"
    takes = Joke
    gives = Reply
    field = "explanation"

    @override
    def fields(self, subject: Joke) -> Sequence[AnswerField]:
        return self.with_steps(super().fields(subject))

    @override
    def variables(self, subject: Joke) -> Mapping[str, Any]:
        return {**super().variables(subject), "caption": subject.caption}

    @override
    def read_json(self, data: Mapping[str, Any], subject: Joke) -> Reply:
        return Reply(text=text_field(data, self.field).strip())

    @override
    def read_text(self, text: str, subject: Joke) -> Reply:
        """The whole reply; where steps were asked for, what stands behind the last `Explanation:`."""
        if not self.step_by_step:
            return super().read_text(text, subject)
        marks = [*_MARK.finditer(said := plain_text(text))]
        explained = said[marks[-1].end() :].strip() if marks else ""
        if not explained:
            raise Unreadable("no explanation stands behind `Explanation:` on a line of its own")
        return Reply(text=explained)


_MARK = re.compile(r"^\W{0,4}(?:final )?explanation(?: of the (?:joke|caption))?\W{0,3}:", re.IGNORECASE | re.MULTILINE)

match_caption = CaptionMatcher
match_caption_from_picture = partial(CaptionMatcher, sees=True)
rank_captions = CaptionRanker
rank_captions_from_picture = partial(CaptionRanker, sees=True)
explain_joke = JokeExplainer
explain_joke_from_picture = partial(JokeExplainer, sees=True)
