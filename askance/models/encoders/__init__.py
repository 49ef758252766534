"""What is no chat model: texts to vectors (`embedder`), pictures and texts to scores (`scorer`), all on record."""

from __future__ import annotations

__all__: list[str] = []
