"""Put recorders into the libraries that are imported, now or later, and take them out again."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Collection
from typing import Any

from .log import Log

# The module of a library whose functions are replaced, and the module here that does it.
RECORDERS = {
    "h5py._hl.dataset": ".h5py_recorder",
    "zarr.core.array": ".zarr_recorder",
    "zarr.core": ".zarr2_recorder",
    "hyperslab.archive.tree.array": ".engine_recorder",
}


# What the preloaded library records in every program; these recorders are for processes without it.
PRELOADED = ("h5py._hl.dataset",)
LIBRARY = "libhyperslab_preload.so"


class _Finder:
    """Watches imports, and puts the recorder into a library as soon as its module has been executed."""

    def __init__(self, log: Log, names: Collection[str]) -> None:
        self.log, self.names = log, names
        self.undos: list[Callable[[], None]] = []

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        """Find the module as Python would have, and change how it is executed."""
        if name not in self.names:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(name, path, target) for finder in others if hasattr(finder, "find_spec"))
        spec = next((one for one in specs if one is not None), None)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            self.put_into(name, module)

        setattr(spec.loader, "exec_module", exec_module)  # noqa: B010, a method for this module alone
        return spec

    def put_into(self, name: str, module: Any) -> None:
        """Replace functions of a module. A version that has other functions is not recorded."""
        try:
            recorder = importlib.import_module(RECORDERS[name], __package__)
            self.undos.append(recorder.put_into(module, self.log))
        except Exception as error:
            library = name.partition(".")[0]
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(f"hyperslab trace: {library} cannot be recorded: {type(error).__name__}: {error}\n")


def install(log: Log, besides_preloaded: bool = False) -> Callable[[], None]:
    """Record all accesses of this process into a log, from now on. Call what it returns to end that.

    `besides_preloaded` leaves out what the preloaded library records.
    """
    names = [name for name in RECORDERS if not (besides_preloaded and name in PRELOADED)]
    finder = _Finder(log, names)
    for name in names:
        if name in sys.modules:
            finder.put_into(name, sys.modules[name])
    sys.meta_path.insert(0, finder)

    def remove() -> None:
        sys.meta_path.remove(finder)
        for undo in reversed(finder.undos):
            undo()
        log.close()

    return remove


def preloaded_path() -> str | None:
    """The path of the preloaded library in this process; None if the system did not load it."""
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        for line in file:
            if LIBRARY in line:
                return line.split(maxsplit=5)[-1].rstrip("\n")
    return None


def replace(owner: Any, **functions: Any) -> Callable[[], None]:
    """Replace attributes of a class or module. Call what it returns to restore them."""
    before = {name: getattr(owner, name) for name in functions}
    for name, function in functions.items():
        setattr(owner, name, function)

    def undo() -> None:
        for name, function in before.items():
            setattr(owner, name, function)

    return undo


def location(filename: str) -> str:
    """Where a file is: its path from the root, its URL, or the `repr` of an open file by which h5py names it."""
    is_given = filename.startswith("<") and filename.endswith(">")
    return filename if is_given or "://" in filename else os.path.abspath(filename)
