"""The demo's data: pictures, the hand-written table of options and answers, and the cassette made from it."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PICTURES = FOLDER / "pictures"
TABLE = FOLDER / "demo.yaml"
"""Pictures, truth, options and answers; what each field means stands at its top."""
CASSETTE = FOLDER / "cassette.jsonl"
"""The answers of the table as records of the real chains' requests, under the model name `handwritten`."""

__all__ = ["CASSETTE", "FOLDER", "PICTURES", "TABLE"]
