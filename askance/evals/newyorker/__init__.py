"""The New Yorker caption contest: three tasks on understanding jokes (Hessel et al., ACL 2023)."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
