"""The tasks over WHOOPS!; importing this module defines them all."""

from __future__ import annotations

from askance.evals.whoops.captioning import captioning
from askance.evals.whoops.explain import explain
from askance.evals.whoops.explain_choice import explain_choice
from askance.evals.whoops.identify import identify
from askance.evals.whoops.matching import matching
from askance.evals.whoops.vqa import vqa

__all__ = ["captioning", "explain", "explain_choice", "identify", "matching", "vqa"]
