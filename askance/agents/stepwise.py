"""Choosing action-reasons with the steps of reasoning written down first (Table 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from askance.agents.choose import ActionReasonChooser

if TYPE_CHECKING:
    from collections.abc import Mapping

    from askance.agents.questions import OptionsQuestion


class StepwiseChooser(ActionReasonChooser):
    """Chooses as `choose_action_reasons` does, and is asked to think step by step before it answers."""

    @override
    def variables(self, subject: OptionsQuestion) -> Mapping[str, Any]:
        return {**super().variables(subject), "step_by_step": True}

    @override
    def schema(self, subject: OptionsQuestion) -> Mapping[str, Any]:
        schema = super().schema(subject)
        return {
            **schema,
            "properties": {"reasoning": {"type": "string"}, **schema["properties"]},
            "required": ["reasoning", *schema["required"]],
        }


choose_step_by_step = StepwiseChooser
