"""Recorded answers, so that any run can be replayed without a network.

`Record` is one request and its answer. `open_records` opens the records at an address, with their leases, ledgers and
pace; a `MemoryStore` keeps some in memory. Cassettes carry them from machine to machine. `explain_miss` says why a
request is not on record.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
