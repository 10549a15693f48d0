"""A file of versioned-hdf5 with every kind of element goes through all that we do with a history, while both commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from versioned_hdf5 import VersionedHDF5File, delete_versions

import hyperslab as hs
from hyperslab.versions import apply, bundle, import_files, pull, push, repair

LENGTH = 40
COLOUR = h5py.enum_dtype({"RED": 0, "GREEN": 1, "BLUE": 42}, basetype="i2")
NESTED = np.dtype([("p", [("x", "<i2"), ("y", "<f4")]), ("v", "<f4", (3,))])
Make = Callable[[Any], Any]
KINDS: dict[str, Make] = {
    "text": lambda i: np.array([f"wört{j}" for j in i], object),
    "bytes": lambda i: np.array([b"b%d" % j for j in i], "S5"),
    "utf8": lambda i: np.array([f"é{j}".encode() for j in i], h5py.string_dtype("utf-8", 6)),
    "record": lambda i: np.array([(j, j / 2, b"n") for j in i], [("a", "<i4"), ("b", ">f8"), ("c", "S3")]),
    "padded": lambda i: np.array([(j, j / 2) for j in i], np.dtype([("a", "i1"), ("b", "f8")], align=True)),
    "nested": lambda i: np.array([((j, j + 1), [j] * 3) for j in i], NESTED),
    "enum": lambda i: np.array([0, 1, 42], "i2")[i % 3].astype(COLOUR),
    "deep/er/complex": lambda i: (i - 2j * i).astype("c16"),
    "c8": lambda i: (i + 1j * i).astype("c8"),
    "f2": lambda i: i.astype("f2"),
    "bool": lambda i: (i % 2).astype(bool),
    "big": lambda i: i.astype(">i4"),
    "long": lambda i: i.astype("g"),
    "nan": lambda i: np.where(i % 4, i, np.nan),
    "grid": lambda i: np.repeat(i[:, None], 7, 1).astype("f4"),
}
Content = dict[str, Any]


def content(seed: int) -> Content:
    return {path: make(np.random.default_rng(seed).integers(0, 9, LENGTH)) for path, make in KINDS.items()}


def plain(elements: Any) -> Any:
    """Elements in a form that compares NaN, text and records alike."""
    if elements.dtype.fields is not None:
        return [plain(elements[name]) for name in elements.dtype.names]
    if elements.dtype.kind == "O":
        return [one if isinstance(one, bytes) else str(one).encode() for one in elements.reshape(-1).tolist()]
    return str(elements.tolist())


class Both:
    """A file, what its versions must hold, and both libraries that change it."""

    def __init__(self, path: Path) -> None:
        self.path, self.expected = path, dict[str, Content]()

    def edited(self, name: str, parent: str, seed: int, at: slice) -> Callable[[Any], None]:
        """What changes a part of each array of a version; the result is expected from then on."""
        new, made = content(seed), {path: one.copy() for path, one in self.expected[parent].items()}
        for path, one in made.items():
            one[at] = new[path][at]
        self.expected[name] = made

        def change(staged: Any) -> None:
            for path in KINDS:
                staged[path][at] = new[path][at]

        return change

    def theirs(self, name: str, change: Callable[[Any], None], path: Path | None = None) -> None:
        with h5py.File(path or self.path, "a") as h5, VersionedHDF5File(h5).stage_version(name) as staged:
            change(staged)

    def check(self, path: Path | None = None) -> None:
        """Everything is there for everybody, and nothing is called damaged."""
        path = path or self.path
        with hs.VersionedFile(path) as file:
            assert file.verify().damages == []
            for name, arrays in self.expected.items():
                for array, elements in arrays.items():
                    assert plain(file[name][array][...]) == plain(elements), (name, array)
        with h5py.File(path) as h5:
            for name, arrays in self.expected.items():
                for array, elements in arrays.items():
                    assert plain(h5[f"_version_data/versions/{name}/{array}"][()]) == plain(elements), (name, array)
                    assert plain(np.asarray(VersionedHDF5File(h5)[name][array][()])) == plain(elements), (name, array)


@pytest.fixture
def both(tmp_path: Path) -> Both:
    """Versions `a` of versioned-hdf5, `b` of ours, and `c` of versioned-hdf5."""
    made = Both(tmp_path / "one.h5")
    made.expected["a"] = content(1)

    def create(staged: Any) -> None:
        for path, elements in made.expected["a"].items():
            kind = h5py.string_dtype() if path == "text" else elements.dtype
            chunks = (9, 4) if elements.ndim == 2 else (9,)
            staged.create_dataset(path, data=elements, dtype=kind, chunks=chunks, compression="gzip")

    made.theirs("a", create)
    with hs.VersionedFile(made.path, "r+") as file, file.stage_version("b") as staged:
        made.edited("b", "a", 2, slice(30, 40))(staged)
    made.theirs("c", made.edited("c", "b", 3, slice(5, 6)))
    made.check()
    return made


def test_branches_merges_and_blame(both: Both) -> None:
    side = both.edited("s", "b", 4, slice(15, 20))
    with hs.VersionedFile(both.path, "r+") as file:
        file.create_branch("side", "b")
        with file.stage_version("s", branch="side") as staged:
            side(staged)
    both.theirs("d", both.edited("d", "c", 5, slice(0, 2)))
    both.edited("m", "d", 4, slice(15, 20))
    with hs.VersionedFile(both.path, "r+") as file:
        file.merge("side", into="main", conflict="raise", name="m")
    both.check()
    with hs.VersionedFile(both.path) as file:
        for path in KINDS:
            assert {change.version.name for change in file.blame(path).changes} <= {"a", "b", "c", "d", "s", "m"}
            blamed = file.blame_elements(path)
            names = [one.version.name for one in blamed.changes]
            assert names[int(np.asarray(blamed.numbers).reshape(LENGTH, -1)[25, 0])] == "a"
    both.theirs("e", both.edited("e", "m", 6, slice(38, 40)))
    both.check()


def test_other_files(both: Both, tmp_path: Path) -> None:
    two, three, four = (tmp_path / f"{name}.h5" for name in ("two", "three", "four"))
    push(both.path, two)
    both.check(two)
    both.theirs("t", both.edited("t", "c", 7, slice(1, 3)), two)
    both.check(two)
    pull(both.path, two)
    both.check()
    bundle(both.path, tmp_path / "x.bundle")
    apply(three, tmp_path / "x.bundle")
    both.check(three)
    import_files([both.path], four, chunks={"": (7,), "grid": (5, 5)})
    both.check(four)
    assert repair(four, tmp_path / "mended.h5").is_complete
    both.check(tmp_path / "mended.h5")


def test_expiry_between_deletions_of_versioned_hdf5(both: Both) -> None:
    both.theirs("d", both.edited("d", "c", 8, slice(2, 30)))
    with hs.VersionedFile(both.path, "r+") as file:
        for name in file.expire(keep_last=3).names:
            del both.expected[name]
    both.check()
    with h5py.File(both.path, "r+") as h5:
        delete_versions(h5, ["c"])
    del both.expected["c"]
    both.check()
    with hs.VersionedFile(both.path, "r+") as file:
        file.modify_metadata("padded", chunks=(6,))
        file.repack()
    both.theirs("e", both.edited("e", "d", 9, slice(0, 40)))
    both.check()
