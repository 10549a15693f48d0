"""Files of every format are made by the engine's tests; servers are those of the remote ones."""

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
