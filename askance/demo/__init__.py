"""The demo's data: pictures, the hand-written table of options and answers, and the cassette made from it."""

from __future__ import annotations

from askance.demo.table import CASSETTE, ENTRIES, FOLDER, NAME, PICTURES, TABLE, DemoPicture, read_table

__all__ = ["CASSETTE", "ENTRIES", "FOLDER", "NAME", "PICTURES", "TABLE", "DemoPicture", "read_table"]
