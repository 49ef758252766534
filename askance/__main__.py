"""`python -m askance` is the `askance` command."""

from __future__ import annotations

from askance.cli import main

if __name__ == "__main__":
    main()
