from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.batch_client import answer, draw
from tests.batch_server import BatchServer, Serve


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    return partial(BatchServer, tmp_path / "endpoint", answer=answer)


@pytest.fixture
def pictures(tmp_path: Path) -> list[str]:
    return draw(tmp_path, 2)
