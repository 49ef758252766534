"""What is no chat model: texts to vectors (`embedding`), pictures and texts to scores (`scoring`), all on record."""

from __future__ import annotations

__all__: list[str] = []
