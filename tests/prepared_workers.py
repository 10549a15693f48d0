"""Workers of the lab that fork from a process that has imported what they need, as `command_line.py` does for commands.

A worker is a process of its own as always, with the environment of whoever starts it; only Python and the libraries are
there already. Tests of how a worker starts, and of what it inherits, start Python themselves.
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess

MODULES = ["numpy", "h5py", "zarr", "hyperslab.model.far_store", "hyperslab.bench.trial",
           "hyperslab.bench.histories.trials", "hyperslab.formats.zarr_python"]  # fmt: skip
PLUGINS = "HDF5_PLUGIN_PATH"  # HDF5 looks at it once, when it is loaded


class PreparedProcess(ForkServerProcess):
    """A forked process with the environment that its parent has when it starts it."""

    def start(self) -> None:
        """Start it."""
        self._environment = dict(os.environ)
        super().start()

    def run(self) -> None:
        """What the process does."""
        os.environ.clear()
        os.environ.update(self._environment)
        super().run()


class PreparedContext(ForkServerContext):
    """Takes the place of the context that starts Python anew for each worker."""

    Process = PreparedProcess  # type: ignore[assignment]


def prepared_context(_: str = "spawn") -> PreparedContext:
    """The context. All tests fork from one server, so that what it has inherited does not depend on their order."""
    folder = os.environ.pop(PLUGINS, None)
    try:
        multiprocessing.set_forkserver_preload(MODULES)
        forkserver.ensure_running()
    finally:
        if folder is not None:
            os.environ[PLUGINS] = folder
    return PreparedContext()
