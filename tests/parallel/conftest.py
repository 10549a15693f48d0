"""Made-up store profiles are those of the cost model's tests; striped stores are started one at a time."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alone_with_stores import alone_with_stores

sys.path.append(str(Path(__file__).parents[1] / "model"))


@pytest.fixture
def alone() -> Iterator[None]:
    """No other process of the tests starts a store."""
    with alone_with_stores():
        yield
