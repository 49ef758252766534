"""What a reply says: its text without what surrounds an answer, and the JSON in it."""

from __future__ import annotations

READERS = 2
"""Version of all readers of replies. Raise it whenever any reply is read differently, be it as unreadable."""
