"""What all tests share."""

import contextlib
import os
import signal

from hypothesis import settings

# netCDF4 points HDF5 to its own filters, which h5py's library cannot use: hdf5plugin's must be registered before.
with contextlib.suppress(ImportError):
    import hdf5plugin  # noqa: F401

# A timing never fails a test: machines are busy at times. A failure belongs to a commit, so the same examples are drawn
# each time; HYPERSLAB_DRAWS=new draws others.
settings.register_profile("hyperslab", deadline=None, derandomize=os.environ.get("HYPERSLAB_DRAWS") != "new")
settings.load_profile("hyperslab")
os.environ.setdefault("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "120s")

# A shell that starts the tests in the background makes them, and all programs that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
