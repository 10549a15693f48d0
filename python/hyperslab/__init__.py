"""Tells you how your array I/O will perform, and makes it fast."""

from hyperslab._core import ChunkGrid, Hyperslab, Points, __version__

__all__ = ["ChunkGrid", "Hyperslab", "Points", "__version__"]
