"""Evaluations: tasks, their runs on disk, scores and figures.

`task`, `solver` and `scorer` are what an evaluation is made of, and `runner` runs one. `run_format`,
`run_configuration` and `run_folder` write the folder of a run, and `run` reads it. `analysis` works on runs that are
there, `report` and `exports` show them. `suite` holds what suites share; `pittads`, `whoops` and `newyorker` are the
suites of the package.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
