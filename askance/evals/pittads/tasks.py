"""The tasks over PittAds; importing this module defines them all."""

from __future__ import annotations

from askance.evals.pittads.arr import arr_multi, arr_single
from askance.evals.pittads.asr import asr
from askance.evals.pittads.mac import mac

__all__ = ["arr_multi", "arr_single", "asr", "mac"]
