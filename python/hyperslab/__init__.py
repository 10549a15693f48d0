"""Predict how fast your array I/O will be, and make it fast."""

from __future__ import annotations

# `typing` takes longer to import than all that `hyperslab run` needs. Type checkers take this name for true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hyperslab._core import ChunkGrid, Hyperslab, Points, __version__
    from hyperslab.advise.answering import advise
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
    "__version__", "accelerate", "accelerated", "advise", "convert", "credentials", "index", "open", "predict",
    "record", "save", "stats",
]  # fmt: skip

_HOMES = {
    **dict.fromkeys(("ChunkGrid", "Hyperslab", "Points", "__version__"), "_core"),
    **dict.fromkeys(("Array", "Group", "credentials", "open", "stats"), "archive"),
    **dict.fromkeys(("Conversion", "convert", "save"), "conversion"),
    **dict.fromkeys(("Index", "index"), "references"),
    **dict.fromkeys(("accelerate", "accelerated"), "running.accelerating"),
    "advise": "advise",
    "record": "trace.recorder",
    "Trace": "trace.trace",
    "predict": "model",
    "VersionedFile": "versions",
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Import everything on first use, so that `hyperslab run` and the command line start at once."""
    if name not in _HOMES:
        raise AttributeError(f"module 'hyperslab' has no attribute {name!r}")
    from importlib import import_module

    home = import_module(f"hyperslab.{_HOMES[name]}")
    return home if _HOMES[name] == name else getattr(home, name)  # `advise` is a room that can be called
