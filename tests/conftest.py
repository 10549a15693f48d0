"""What all tests share."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from draws import few
from hyperslab.lab import worker
from prepared_workers import prepared_context

# netCDF4 points HDF5 to its own filters, which h5py's library cannot use: hdf5plugin's must be registered before.
with contextlib.suppress(ImportError):
    import hdf5plugin  # noqa: F401

# The tests start thousands of processes: where nothing compiled is kept, each of them compiles hyperslab anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A timing never fails a test: machines are busy at times. A failure belongs to a commit, so the same examples are drawn
# each time; HYPERSLAB_DRAWS=new draws others, and four times as many.
is_fixed = os.environ.get("HYPERSLAB_DRAWS") != "new"
settings.register_profile("hyperslab", deadline=None, derandomize=is_fixed, max_examples=few(100))
settings.load_profile("hyperslab")
os.environ.setdefault("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "120s")

# A shell that starts the tests in the background makes them, and all programs that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# A twentieth of all tests' time went into looking for garbage among what stays; there is memory enough to look later.
gc.set_threshold(100_000, 20, 50)


@pytest.fixture(scope="session", autouse=True)
def own_data_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither find the store profile of this machine nor remember for it what codecs cost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="module", autouse=True)
def _what_stays_is_not_looked_at_again() -> Iterator[None]:
    """Thousands of tests leave a million objects; a full collection of garbage would look at all of them each time."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def prepared_workers() -> Iterator[None]:
    """Workers of the lab start quickly: they fork from a process that has imported what they need."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker.multiprocessing, "get_context", prepared_context)
        yield


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte that holds a valuable file."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "hyperslab-test", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount")
    if done.returncode:
        pytest.skip(f"no disk can be mounted: {done.stderr.strip()}")
    (folder / "old.npy").write_bytes(b"worth something")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
