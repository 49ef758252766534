"""What a model will not take, learnt from its complaint about a request."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from askance.chat import JsonObject
    from askance.models.complaints import Complaint
    from askance.models.settings import TokenField

OPTIONAL = ("temperature", "top_p")
"""Fields that a model with a fixed sampling rejects; without them it answers as it always does."""

_log = logging.getLogger("askance")
_UNSUPPORTED = re.compile(
    r"not support|n't support|unsupported|deprecated|unrecognized|unknown|extra (inputs|fields)|only the default",
    re.IGNORECASE,
)


@dataclass
class Habits:
    """What the requests to one model have to look like."""

    token_field: TokenField = "max_tokens"
    without: set[str] = field(default_factory=set[str])
    noticed: JsonObject = field(default_factory=dict[str, Any])
    """What was learnt: `token_field`, the name of the token limit, and `without`, the rejected fields, sorted."""
    _said: set[str] = field(default_factory=set[str], init=False, repr=False, compare=False)

    def tell(self, model: str) -> None:
        """Says, once for each rejected field, that the answers of `model` are drawn without it."""
        for name in sorted(self.without - self._said):
            self._said.add(name)
            _log.warning("%s takes no %s: its answers are drawn at its default.", model, name)

    def learn(self, complaint: Complaint, body: Mapping[str, Any]) -> bool:
        """Whether `complaint` about `body` tells how to ask instead; the next body will then be another."""
        if complaint.status not in {400, 422} or not (
            _UNSUPPORTED.search(complaint.words) or "unsupported" in complaint.code
        ):
            return False
        named = complaint.param or complaint.words
        if "max_tokens" in body and "max_completion_tokens" in complaint.words:
            self.token_field = self.noticed["token_field"] = "max_completion_tokens"
            return True
        if "max_completion_tokens" in body and "max_completion_tokens" in named:
            self.token_field = self.noticed["token_field"] = "max_tokens"
            return True
        rejected = {name for name in OPTIONAL if name in body and re.search(rf"\b{name}\b", named)}
        self.without |= rejected
        if rejected:
            self.noticed["without"] = sorted(self.without)
        return bool(rejected)
