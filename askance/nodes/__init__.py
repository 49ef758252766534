"""What a tool and an agent are made of: a prompt, a model, and a parser for what the model writes."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
