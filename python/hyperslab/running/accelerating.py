"""`hyperslab.accelerate()`: the same as `hyperslab run`, for a process that runs already, such as a notebook's."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from hyperslab.errors import Unsupported
from hyperslab.running.command import LIBRARY, library
from hyperslab.running.records import MAGIC, Totals

_lock = threading.Lock()
_depth = 0
_encoding_depth = 0
_loaded: ctypes.CDLL | None = None
_serves_anyway = False  # `hyperslab run` stays in effect


def accelerate(*, writes: bool = False) -> Callable[[], None]:
    """Let our engine serve reads of HDF5 files that this process makes through libhdf5, from now on.

    Everything that calls libhdf5 is served: h5py, netCDF4, PyTables, and what is built on them, imported or not yet.
    Files that are open stay open. Reads that are not ours go to libhdf5, as under `hyperslab run`. xarray opens files
    with the engine "hyperslab" if no engine is named. Names that are URLs are opened as `hyperslab.open` opens them,
    with the same credentials.

    Parameters
    ----------
    writes
        Whether compressed chunks that the process writes are encoded by all cores, as `hyperslab run --writes` does.
        libhdf5 has all of them when a call returns: none waits, because calls may be bound that we do not see.

    Returns
    -------
    Callable[[], None]
        Call it to undo this.

    Raises
    ------
    Unsupported
        This installation has no library for that: only Linux has one.
    """
    with _lock:
        preloaded = _library()
        preloaded.hyperslab_patch()
        _count(preloaded, 1)
        _count_writes(preloaded, int(writes))
    undone = threading.Event()

    def undo() -> None:
        """Undo it once. Other calls of `accelerate` stay in effect."""
        if undone.is_set():
            return
        undone.set()
        with _lock:
            _count(preloaded, -1)
            _count_writes(preloaded, -int(writes))

    return undo


@contextlib.contextmanager
def accelerated(*, writes: bool = False) -> Iterator[None]:
    """`accelerate` for a block: `with hyperslab.accelerated(): …`."""
    undo = accelerate(writes=writes)
    try:
        yield
    finally:
        undo()


def accelerations() -> Totals:
    """What this process has counted so far, `served_reads` and so on."""
    with _lock:
        library = _library()
    count = library.hyperslab_counts(None, 0)
    numbers = (ctypes.c_uint64 * count)()
    library.hyperslab_counts(numbers, count)
    totals = Totals()
    totals.add(MAGIC + bytes(numbers))
    return totals


def _count(library: ctypes.CDLL, step: int) -> None:
    global _depth
    _depth += step
    library.hyperslab_serve(int(_depth > 0 or _serves_anyway))
    if _depth == 1 and step == 1:
        _prefer_our_engine()
    elif _depth == 0:
        _prefer_xarrays_engines()


def _count_writes(library: ctypes.CDLL, step: int) -> None:
    global _encoding_depth
    _encoding_depth += step
    library.hyperslab_encode(int(_encoding_depth > 0))


def _library() -> ctypes.CDLL:
    """Our library, in the scope of the whole process, so that modules that are loaded later find its functions."""
    global _loaded, _serves_anyway
    if _loaded is None:
        path = library()
        if path is None:
            raise Unsupported(f"{LIBRARY} is not part of this installation: only Linux has it")
        is_preloaded = os.path.basename(path) in os.environ.get("LD_PRELOAD", "")  # noqa: PTH119
        _loaded = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        _loaded.hyperslab_patch.restype = ctypes.c_size_t
        _loaded.hyperslab_counts.restype = ctypes.c_size_t
        _loaded.hyperslab_counts.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        serves = bool(_loaded.hyperslab_serve(0))
        _serves_anyway = is_preloaded and serves  # under `hyperslab trace` alone, it does not
        _loaded.hyperslab_serve(int(_serves_anyway))
        _loaded.hyperslab_ask(_ask)
        atexit.register(_loaded.hyperslab_ask, None)  # nobody can be asked when Python has ended
    return _loaded


def _asked(url: bytes, room: int, size: int) -> int:
    """Say how a URL is reached that this process opens by libhdf5 or netCDF-C."""
    from hyperslab.running.reaching import answer

    said = answer(url.decode())
    if len(said) > size:
        return 0
    ctypes.memmove(room, said, len(said))
    return len(said)


_ask = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)(_asked)


_guess: Any = None


def _prefer_our_engine() -> None:
    """Make xarray open what our engine can open with it, if no engine is named and xarray is here."""
    global _guess
    try:
        from xarray.backends import plugins
    except ImportError:
        return
    if "hyperslab" not in plugins.list_engines():
        return
    original = plugins.guess_engine

    def guess_engine(store_spec: Any, *arguments: Any, **options: Any) -> Any:
        ours = plugins.list_engines().get("hyperslab")
        with contextlib.suppress(Exception):
            if ours is not None and isinstance(store_spec, str | os.PathLike) and ours.guess_can_open(store_spec):
                return "hyperslab"
        return original(store_spec, *arguments, **options)

    _guess, plugins.guess_engine = original, guess_engine


def _prefer_xarrays_engines() -> None:
    global _guess
    if _guess is not None:
        sys.modules["xarray.backends.plugins"].guess_engine = _guess  # type: ignore[attr-defined]
        _guess = None
