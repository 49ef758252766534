"""The tasks over PittAds; importing this module defines them all."""

from __future__ import annotations

from askance.evals.pittads.aor import aor
from askance.evals.pittads.arr import arr_multi, arr_single
from askance.evals.pittads.arr_baselines import arr_baseline
from askance.evals.pittads.arr_clip import arr_clip
from askance.evals.pittads.asr import asr
from askance.evals.pittads.mac import mac

__all__ = ["aor", "arr_baseline", "arr_clip", "arr_multi", "arr_single", "asr", "mac"]
