"""What tests of crashes need: time for every crash point."""

from __future__ import annotations

from pathlib import Path

import pytest
from disks import ALL

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if ALL and item.path.parent == HERE:
            item.add_marker(pytest.mark.timeout(7200))
