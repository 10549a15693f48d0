"""Files that are drawn once for all tests that only look at them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import audited_files
import pytest

Kept = Callable[..., Path]


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A file of one kind, which no test changes, in a folder of its kind."""
    folder = tmp_path_factory.mktemp("kept")

    @cache
    def made(kind: str, seed: int = 0) -> Path:
        (folder / kind).mkdir(exist_ok=True)
        return audited_files.drawn(folder / kind, kind, seed)

    return made
