"""Which pictures of a run cannot be used, said before anything is asked."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from askance.amounts import many
from askance.errors import BadImage

if TYPE_CHECKING:
    from askance.evals.sample import Sample

_log = logging.getLogger("askance")

NAMED = 3
"""Samples that a warning names, at most."""


def warn_of_pictures(samples: Iterable[Sample]) -> None:
    """Warns of pictures that cannot be opened. Headers are read and no pixels, so that a damaged one may still pass.

    Args:
        samples: that are to be asked about.
    """
    asked = {sample.id: sample.image for sample in samples}
    faults: dict[str, str] = {}
    for name, image in asked.items():
        try:
            _ = image and image.info
        except BadImage as error:
            faults[name] = error.message.rstrip(".")
    if faults:
        named = "; ".join(f"{name!r} ({fault})" for name, fault in islice(faults.items(), NAMED))
        _log.warning(
            "%s of %s a picture that cannot be used: %s%s. Mend them, or leave them out of the data.",
            f"{len(faults):,}",
            f"{many(len(asked), 'sample')} {'has' if len(faults) == 1 else 'have'}",
            named,
            "; …" if len(faults) > NAMED else "",
        )
