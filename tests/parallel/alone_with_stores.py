"""One start of a striped store at a time, as each removes what killed stores of any process left behind."""

from __future__ import annotations

import contextlib
import fcntl
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def alone_with_stores() -> Iterator[None]:
    """Keep other processes of the tests from starting a store, and thus from removing what this one has killed."""
    with (Path(tempfile.gettempdir()) / "hyperslab-tests-of-striped-stores.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
