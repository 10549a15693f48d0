"""The elements that trials write.

They are generated from a seed, so that reads can be checked without a stored copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# The arrays of a file are shifted views of one buffer: different data, without generating each array.
SHIFTS = 4096
SEED = 2023


@dataclass(frozen=True)
class Field:
    """The elements of a file's arrays: a generated field, or your own array from `file` (.npy)."""

    kind: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    file: Path | None = None

    def buffer(self) -> np.ndarray:
        """The elements of all arrays in one flat buffer, with room for `SHIFTS` shifts.

        Compound elements are stored as bytes.
        """
        if self.file is not None:
            loaded: np.ndarray = np.load(self.file)
            return loaded.reshape(-1)
        elements = int(np.prod(self.shape, dtype=np.int64)) + SHIFTS
        if self.dtype.fields is None:
            return _MAKERS[self.kind](elements, self.dtype)
        names = self.dtype.names or ()
        plain = _MAKERS[self.kind](elements * len(names), self.dtype[names[0]])
        return plain.view(self.dtype)

    def array(self, buffer: np.ndarray, index: int) -> np.ndarray:
        """Array number `index`, as a C-contiguous view of `buffer`."""
        elements = int(np.prod(self.shape, dtype=np.int64))
        start = 0 if self.file is not None else index % SHIFTS
        return buffer[start : start + elements].reshape(self.shape)


def _uniform(elements: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Uniform in [0, 1) as published, or integers over their whole range: incompressible."""
    random = np.random.default_rng(SEED)
    if dtype.kind == "f":
        wide = np.float32 if dtype.itemsize <= 4 else np.float64
        return random.random(elements, dtype=wide).astype(dtype, copy=False)
    return np.frombuffer(random.bytes(elements * dtype.itemsize), dtype)


def _waves(elements: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Smooth waves with a little noise, rounded to two decimals as instruments do. They compress about twofold."""
    random = np.random.default_rng(SEED)
    index = np.arange(elements, dtype=np.float32)
    field = np.sin(index / 333.0) * 40 + np.sin(index / 71003.0) * 15
    field += random.normal(0, 0.05, elements).astype(np.float32)
    return np.asarray(np.round(field, 2) if dtype.kind == "f" else field + 64, dtype)


def _constant(elements: int, dtype: np.dtype[Any]) -> np.ndarray:
    """The same value everywhere. It is not zero, because some libraries do not store zeros."""
    return np.full(elements, 7, dtype)


def _integers(elements: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Counts like those of a detector: small, mostly zero to nine."""
    counts: np.ndarray = np.random.default_rng(SEED).poisson(3.0, elements)
    return np.asarray(counts, dtype)


_MAKERS = {"uniform": _uniform, "waves": _waves, "constant": _constant, "integers": _integers}
