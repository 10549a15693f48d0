"""Fixtures: files of every format from the engine's tests, and servers from the remote tests."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("engine", "remote")]


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    import servers

    with servers.moto() as url:
        yield url
