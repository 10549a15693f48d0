"""The elements that trials write: made from a seed, so that what is read can be checked without keeping a copy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# Arrays of one file differ by a shift in one buffer: distinct data without the cost of making each.
SHIFTS = 4096
SEED = 2023


@dataclass(frozen=True)
class Field:
    """What fills the arrays of a file: a generated field, or the user's own array kept in `file` (.npy)."""

    kind: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    file: Path | None = None

    def buffer(self) -> np.ndarray:
        """The elements of all arrays, flat, with room for `SHIFTS` shifts; compound ones as their fields' bytes."""
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
        """Array number `index`, a C-contiguous view into `buffer`."""
        elements = int(np.prod(self.shape, dtype=np.int64))
        start = 0 if self.file is not None else index % SHIFTS
        return buffer[start : start + elements].reshape(self.shape)


def _uniform(elements: int, dtype: np.dtype[Any]) -> np.ndarray:
    """U[0, 1) as published, or integers over their whole range: incompressible."""
    random = np.random.default_rng(SEED)
    if dtype.kind == "f":
        wide = np.float32 if dtype.itemsize <= 4 else np.float64
        return random.random(elements, dtype=wide).astype(dtype, copy=False)
    return np.frombuffer(random.bytes(elements * dtype.itemsize), dtype)


def _waves(elements: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Smooth waves and a little noise, kept to two decimals as instruments do: compresses about twofold."""
    random = np.random.default_rng(SEED)
    index = np.arange(elements, dtype=np.float32)
    field = np.sin(index / 333.0) * 40 + np.sin(index / 71003.0) * 15
    field += random.normal(0, 0.05, elements).astype(np.float32)
    return np.asarray(np.round(field, 2) if dtype.kind == "f" else field + 64, dtype)


def _constant(elements: int, dtype: np.dtype[Any]) -> np.ndarray:
    """The same value everywhere; not zero, which some libraries do not store."""
    return np.full(elements, 7, dtype)


def _integers(elements: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Counts as detectors give them: small, mostly zero to nine."""
    counts: np.ndarray = np.random.default_rng(SEED).poisson(3.0, elements)
    return np.asarray(counts, dtype)


_MAKERS = {"uniform": _uniform, "waves": _waves, "constant": _constant, "integers": _integers}
