"""Predict how fast your array I/O will be, and make it fast."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hyperslab._core import ChunkGrid, Hyperslab, Points, __version__

if TYPE_CHECKING:
    from hyperslab.archive import Array, Group, credentials, open, stats
    from hyperslab.conversion import Conversion, convert, save
    from hyperslab.model import predict
    from hyperslab.references import Index, index
    from hyperslab.running.accelerating import accelerate, accelerated
    from hyperslab.trace.recorder import record
    from hyperslab.trace.trace import Trace
    from hyperslab.versions import VersionedFile

__all__ = [
    "Array", "ChunkGrid", "Conversion", "Group", "Hyperslab", "Index", "Points", "Trace", "VersionedFile",
    "__version__", "accelerate", "accelerated", "convert", "credentials", "index", "open", "predict", "record", "save",
    "stats",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Import everything that needs NumPy on first use, so that the command line starts without it."""
    if name in ("Array", "Group", "credentials", "open", "stats"):
        return getattr(import_module("hyperslab.archive"), name)
    if name in ("Conversion", "convert", "save"):
        return getattr(import_module("hyperslab.conversion"), name)
    if name in ("Index", "index"):
        return getattr(import_module("hyperslab.references"), name)
    if name in ("accelerate", "accelerated"):
        return getattr(import_module("hyperslab.running.accelerating"), name)
    if name == "record":
        return import_module("hyperslab.trace.recorder").record
    if name == "Trace":
        return import_module("hyperslab.trace.trace").Trace
    if name == "predict":
        return import_module("hyperslab.model").predict
    if name == "VersionedFile":
        return import_module("hyperslab.versions").VersionedFile
    raise AttributeError(f"module 'hyperslab' has no attribute {name!r}")
