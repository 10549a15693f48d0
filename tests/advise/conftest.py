"""What the tests of advice share: a store profile with known prices, and small files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hyperslab.advise import stored
from hyperslab.model.store_profile import StoreProfile

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "model"), str(ROOT / "benchmarks")]

from made_up import made_up_store_profile  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def _small_samples() -> Iterator[None]:
    """Codecs are measured on a quarter of what users' data are sampled by: in tests the rates matter little."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "SAMPLE", tuple(nbytes // 4 for nbytes in stored.SAMPLE))
        yield


@pytest.fixture(scope="session")
def profile(tmp_path_factory: pytest.TempPathFactory) -> StoreProfile:
    return made_up_store_profile(tmp_path_factory.mktemp("profile"), slow=3.0)


@pytest.fixture(scope="session")
def profile_file(profile: StoreProfile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "profile.json"
    profile.save(path)
    return path


@pytest.fixture(scope="session")
def maps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of maps, one in each chunk, and beside it an array without chunks."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path_factory.mktemp("maps") / "maps.h5"
    elements = np.add.outer(np.arange(160.0), np.add.outer(np.arange(40.0), np.arange(50.0))).astype("f4")
    with h5py.File(path, "w") as file:
        file.create_dataset("sst", data=elements, chunks=(1, 40, 50), compression="gzip", shuffle=True)
        file["plain"] = elements[:20]
    return path


@pytest.fixture(scope="session")
def run_profile(tmp_path_factory: pytest.TempPathFactory) -> StoreProfile:
    """A profile that has our engine too, so that `hyperslab run` has prices."""
    return made_up_store_profile(tmp_path_factory.mktemp("profile"), ("hdf5", "zarr", "hyperslab"), slow=0.5)
