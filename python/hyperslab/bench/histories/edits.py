"""The five workloads of "Performance of the Versioned HDF5 Library": files that change a little with each version.

Changed rows are drawn from a power law; most of them are near the end. Rows are inserted and deleted in all three
arrays, but values change only in the last one, as in the published code. All contenders get the same edits: for each
array its new shape, and all rows from the first changed one on. The published code wrote inserted and deleted rows in
one call, as we do, but wrote changed rows one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
POWER = 20.0  # exponent of the power law in the published code


@dataclass(frozen=True)
class Edit:
    """What a version does to an array: its new shape, and the new rows at its end."""

    shape: tuple[int, ...]
    first_row: int
    rows: np.ndarray[Any, Any]


@dataclass(frozen=True)
class EditPattern:
    """How many rows an array has at first, and how many rows each version changes, inserts, deletes and appends."""

    name: str
    rows: int
    changed: int
    inserted: int
    deleted: int
    appended: int
    columns: int | None = None  # columns of a table whose indices are the other two arrays

    @property
    def grows(self) -> bool:
        """Whether later versions are larger."""
        return self.appended + self.inserted > self.deleted

    def edits(self, count: int, seed: int = 4) -> Iterator[Mapping[str, Edit]]:
        """The edits of each version, by array. The first version creates the arrays."""
        random = np.random.default_rng(seed)
        arrays = {name: self._values(name, random, self.rows) for name in ("key0", "key1", "val")}
        if self.columns is not None:
            arrays["key1"] = self._values("key1", random, self.columns)
        yield {name: Edit(array.shape, 0, array) for name, array in arrays.items()}
        for _ in range(count - 1):
            step = self._step(random, len(arrays["val"]))
            edits = {}
            for name in arrays:
                if self.columns is not None and name == "key1":
                    continue
                changed = step[0] if name == "val" else step[0][:0]
                arrays[name], first = self._stepped(name, arrays[name], (changed, *step[1:]), random)
                if first < len(arrays[name]):
                    edits[name] = Edit(arrays[name].shape, first, arrays[name][first:])
            yield edits

    def _values(self, name: str, random: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        if name != "val":
            return random.integers(0, 1_000_000, count)
        return random.random(count if self.columns is None else (count, self.columns))

    def _step(self, random: np.random.Generator, length: int) -> tuple[Rows, Rows, Rows]:
        """The rows to change, the rows before which to insert one, and the rows of the result to delete."""
        changed, inserted = _drawn(random, self.changed, length), _drawn(random, self.inserted, length)
        return changed, inserted, _drawn(random, self.deleted, length + len(inserted))

    def _stepped(
        self, name: str, array: np.ndarray[Any, Any], step: tuple[Rows, Rows, Rows], random: np.random.Generator
    ) -> tuple[np.ndarray[Any, Any], int]:
        changed, inserted, deleted = step
        first = min([len(array), *changed[:1].tolist(), *inserted[:1].tolist(), *deleted[:1].tolist()])
        made = array.copy()
        made[changed] = self._values(name, random, len(changed))
        made = np.insert(made, inserted, self._values(name, random, len(inserted)), axis=0)
        made = np.delete(made, deleted, axis=0)
        return np.concatenate([made, self._values(name, random, self.appended)]), first


def _drawn(random: np.random.Generator, count: int, length: int) -> Rows:
    """Draw about `count` different rows, in order."""
    return np.unique((random.power(POWER, count) * length).astype(np.int64))


EDIT_PATTERNS = {
    workload.name: workload
    for workload in (
        EditPattern("large_fraction_changes_sparse", 5000, 1000, 10, 10, 10),
        EditPattern("small_fraction_changes_sparse", 5000, 10, 10, 10, 10),
        EditPattern("large_fraction_constant_sparse", 5000, 1000, 0, 0, 0),
        EditPattern("mostly_appends_sparse", 1000, 10, 10, 10, 1000),
        EditPattern("mostly_appends_dense", 30, 10, 1, 1, 1, columns=30),
    )
}
