"""A server of the Model Context Protocol: what askance finds out about pictures, as tools for any MCP client."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
