"""What tests of crashes need: time for every crash point, and nothing left behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from disks import ALL

HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Objects of files that died are collected with their module: closing them later could close identifiers that
    libhdf5 has given to files of other tests since.
    """
    yield
    gc.collect()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if ALL and item.path.parent == HERE:
            item.add_marker(pytest.mark.timeout(7200))
