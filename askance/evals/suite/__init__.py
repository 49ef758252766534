"""What suites share: options and contexts of tasks, files of a data set, lists of images, orders, folds, scorers.

A suite imports from here and never from another suite.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
