"""Fixtures: files that are made once, and the servers that serve them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import servers

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))  # tests read its files too


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of every format."""
    h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
    root = tmp_path_factory.mktemp("served")
    random = np.random.default_rng(1)
    with h5py.File(root / "ocean.h5", "w") as made:
        values = random.normal(size=(64, 128, 256)).astype("f4")
        made.create_dataset("deflated", data=values, chunks=(4, 64, 64), compression="gzip", compression_opts=1)
        made.create_dataset("plain", data=values, chunks=(4, 64, 64))
        made.create_dataset("whole", data=values)
        made.create_dataset("names", data=["a", "bc", "ä" * 300], dtype=h5py.string_dtype())
        made["group/deep"] = np.arange(12.0).reshape(3, 4)
    return root


@pytest.fixture(scope="session")
def server(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Nginx]:
    with servers.nginx(tmp_path_factory.mktemp("nginx") / "run", root) as running:
        yield running


@pytest.fixture
def proxy(server: servers.Nginx) -> Iterator[servers.Proxy]:
    made = servers.Proxy(server.port)
    yield made
    made.close()


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    with servers.moto() as url:
        yield url
