"""Tells you how your array I/O will perform, and makes it fast."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hyperslab._core import ChunkGrid, Hyperslab, Points, __version__

if TYPE_CHECKING:
    from hyperslab.archive import Array, Group, credentials, open, stats
    from hyperslab.references import Index, index

__all__ = [
    "Array", "ChunkGrid", "Group", "Hyperslab", "Index", "Points", "__version__", "credentials", "index", "open",
    "stats",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """What needs NumPy is imported when it is first asked for: the command line starts without it."""
    if name in ("Array", "Group", "credentials", "open", "stats"):
        return getattr(import_module("hyperslab.archive"), name)
    if name in ("Index", "index"):
        return getattr(import_module("hyperslab.references"), name)
    raise AttributeError(f"module 'hyperslab' has no attribute {name!r}")
