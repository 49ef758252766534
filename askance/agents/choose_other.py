"""Which option fits a picture, where options are no action-reasons: captions, and explanations of what is unusual."""

from __future__ import annotations

from typing_extensions import override

from askance.agents.choose import ActionReasonChooser, PictureChooser


class CaptionChooser(ActionReasonChooser):
    """Chooses the caption that is better for a described picture (*WHOOPS!*, section 4.2)."""

    prompt = "choose_caption"

    @staticmethod
    @override
    def prompt_of(mode: str) -> str:
        return "choose_caption"


class PictureCaptionChooser(PictureChooser):
    """Chooses the caption that is better for a picture that it sees (*WHOOPS!*, section 4.2)."""

    prompt = "choose_caption_from_picture"

    @staticmethod
    @override
    def prompt_of(mode: str) -> str:
        return "choose_caption_from_picture"


class ExplanationChooser(ActionReasonChooser):
    """Chooses what explains best what is unusual about a described picture (section 7.3)."""

    prompt = "choose_explanation"

    @staticmethod
    @override
    def prompt_of(mode: str) -> str:
        return "choose_explanation"


class PictureExplanationChooser(PictureChooser):
    """Chooses what explains best what is unusual about a picture that it sees (section 7.3)."""

    prompt = "choose_explanation_from_picture"

    @staticmethod
    @override
    def prompt_of(mode: str) -> str:
        return "choose_explanation_from_picture"


choose_caption = CaptionChooser
choose_caption_from_picture = PictureCaptionChooser
choose_explanation = ExplanationChooser
choose_explanation_from_picture = PictureExplanationChooser
