"""The synthetic run that the tests of the report share."""

from __future__ import annotations

import pytest
from synthetic import make_run

from hyperslab.bench.results import Run


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("run"))
