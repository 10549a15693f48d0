"""hyperslab and versioned-hdf5 take turns on one file, and a dictionary of NumPy arrays judges both."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import h5py
import hypothesis.strategies as st
import numpy as np
import pytest
import versioned_hdf5
from differences import assert_difference
from disks import ALL, Killed
from flips import hired
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.versions.commit import writing
from hyperslab.versions.inspect import witness

# Warnings from processes that were killed: what they release afterwards does not count.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
TEXT = h5py.string_dtype()
DTYPES: dict[str, Any] = {
    "f8": np.dtype("<f8"),
    "i2": np.dtype(">i2"),
    "bool": np.dtype(bool),
    "S3": np.dtype("S3"),
    "c8": np.dtype("<c8"),
    "pair": np.dtype([("a", "<i4"), ("b", "<f4")]),
    "record": np.dtype([("name", "S4"), ("at", ">f8", (2,)), ("good", "?")]),
    "enum": h5py.enum_dtype({"no": 0, "yes": 1, "maybe": 2}, basetype="u1"),
    "text": TEXT,
}
CODECS: list[dict[str, Any]] = [
    {},
    {"compression": "gzip", "compression_opts": 1, "shuffle": True},
    {"compression": "lzf"},
    {"fletcher32": True},
]
CHUNKS = {1: [(3,), (10,)], 2: [(2, 3), (5, 4)], 3: [(2, 2, 2)]}


def elements(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Few different values, so that chunks repeat and some are the fill value; or noise, which LZF does not shorten."""
    if dtype == "f8" and seed % 3 == 1:
        return np.asarray(np.random.default_rng(seed).random(shape))
    numbers = np.asarray(np.random.default_rng(seed).integers(0, 3, shape))
    if dtype == "text":
        return np.asarray(np.array(["", "é", "longer text"], object)[numbers], TEXT)
    if dtype == "pair":
        made = np.zeros(shape, DTYPES[dtype])
        made["a"], made["b"] = numbers, numbers / 4
        return made
    if dtype == "record":
        made = np.zeros(shape, DTYPES[dtype])
        made["name"] = np.array([b"", b"a", b"abcd"])[numbers]
        made["at"], made["good"] = numbers[..., None], numbers > 1
        return made
    if dtype == "c8":
        return np.asarray(numbers * (1 - 2j), "<c8")
    if dtype == "S3":
        return np.asarray(np.array([b"", b"a", b"abc"])[numbers], "S3")
    return numbers.astype(DTYPES[dtype])


def fill_of(dtype: str, fill: int) -> Any:
    if dtype == "text":
        return ""
    if dtype == "record":
        return np.zeros((), DTYPES[dtype])[()]
    if dtype == "pair":
        return np.array((fill, fill / 4), DTYPES[dtype])[()]
    return DTYPES[dtype].type(b"a" * fill if dtype == "S3" else fill)


def plain(read: Any) -> np.ndarray[Any, Any]:
    """What both libraries return, with text as `str`."""
    array = np.asarray(read)
    if array.dtype.kind != "O":
        return array
    as_text = [one.decode() if isinstance(one, bytes) else one for one in array.reshape(-1)]
    return np.array(as_text, object).reshape(array.shape)


class Model:
    """One array, and how it was created."""

    def __init__(self, data: np.ndarray[Any, Any], dtype: str, fill: Any, note: int | None = None) -> None:
        self.data, self.dtype, self.fill, self.note = data, dtype, fill, note  # the note is an attribute

    def copy(self) -> Model:
        return Model(self.data.copy(), self.dtype, self.fill, self.note)

    def resized(self, shape: tuple[int, ...]) -> Model:
        grown = np.full(shape, self.fill, self.data.dtype)
        kept = tuple(slice(0, min(old, new)) for old, new in zip(self.data.shape, shape, strict=True))
        grown[kept] = self.data[kept]
        return Model(grown, self.dtype, self.fill, self.note)


lengths = st.integers(0, 13)
seeds = st.integers(0, 1000)


class Versions(RuleBasedStateMachine):
    """Versions of a few arrays, each committed by one of the libraries."""

    @initialize(borrowed=st.booleans())
    def begin(self, borrowed: bool) -> None:
        self.folder = tempfile.TemporaryDirectory(
            prefix="versions-", dir="/dev/shm" if Path("/dev/shm").exists() else None
        )
        self.path = Path(self.folder.name) / "v.h5"
        self.versions: dict[str, dict[str, Model]] = {}
        self.made: dict[str, dict[str, Any]] = {}  # how each path was first created, which stays so
        self.borrowed = borrowed
        self.held: hs.VersionedFile | None = None  # open over several rules, or closed after each one
        self.count = 0
        hs.VersionedFile(self.path, "w").close()

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.let_go()
            self.folder.cleanup()

    @rule(stays=st.booleans())
    def reopen(self, stays: bool) -> None:
        self.let_go()
        if stays and not self.borrowed:
            self.held = hs.VersionedFile(self.path, "r+")

    def let_go(self) -> None:
        if self.held is not None:
            self.held.close()
            self.held = None

    def hand_over(self) -> None:
        """Close the file, and finish what a kill left. `test_mixed_crashes.py` lets others write first."""
        self.let_go()
        if Path(f"{self.path}.journal").exists():
            hs.VersionedFile(self.path, "r+").close()

    @contextmanager
    def opened(self) -> Iterator[hs.VersionedFile]:
        """Our file, open for writing."""
        if self.held is not None:
            yield self.held
        elif self.borrowed:
            with h5py.File(self.path, "r+") as file:
                yield hs.VersionedFile(file)
        else:
            with hs.VersionedFile(self.path, "r+") as ours:
                yield ours

    def create(self, version: Any, state: dict[str, Model], draw: Any) -> None:
        path = draw(st.sampled_from(["x", "y", "g/x", "g/h/z"]))
        if path in state:
            return
        if path not in self.made:
            ndim = draw(st.sampled_from([1, 1, 2, 3]))
            dtype = draw(st.sampled_from(list(DTYPES)))
            codecs = draw(st.sampled_from(CODECS)) if dtype != "text" else {}
            fill = fill_of(dtype, draw(st.sampled_from([0, 1])))
            self.made[path] = {"chunks": draw(st.sampled_from(CHUNKS[ndim])), "dtype": dtype, "fill": fill, **codecs}
        made = dict(self.made[path])
        dtype, fill = made.pop("dtype"), made.pop("fill")
        shape = tuple(draw(lengths) for _ in made["chunks"])
        fill_option = {} if dtype == "text" else {"fillvalue": fill}
        if draw(st.booleans()):
            data = elements(dtype, shape, draw(seeds))
            version.create_dataset(path, data=data, dtype=DTYPES[dtype], **made, **fill_option)
        else:
            data = np.full(shape, fill, DTYPES[dtype])
            version.create_dataset(path, shape=shape, dtype=DTYPES[dtype], data=None, **made, **fill_option)
        state[path] = Model(data, dtype, fill)

    def put(self, version: Any, state: dict[str, Model], path: str, draw: Any) -> None:
        model = state[path]
        key: list[Any] = []
        for length in model.data.shape:
            start, stop = sorted((draw(st.integers(0, length)), draw(st.integers(0, length))))
            key.append(slice(start, stop, draw(st.sampled_from([1, 1, 2]))))
        if draw(st.booleans()) and model.data.shape[0]:
            key[0] = draw(st.integers(0, model.data.shape[0] - 1))
        elif draw(st.booleans()) and model.data.shape[-1]:
            places = st.integers(0, model.data.shape[-1] - 1)
            key[-1] = sorted(draw(st.sets(places, min_size=1, max_size=4)))
        new = elements(model.dtype, np.shape(model.data[tuple(key)]), draw(seeds))
        new = new[()]  # one text, not an array of it without axes, which versioned-hdf5 2.6 cannot store
        model.data[tuple(key)] = new
        version[path][tuple(key)] = new

    def change(self, version: Any, state: dict[str, Model], draw: Any) -> None:
        for _ in range(draw(st.integers(0, 5))):
            what = draw(st.sampled_from([*("create", "put") * 2, "put", "resize", "replace", "note", "delete"]))
            if what == "create" or not state:
                self.create(version, state, draw)
                continue
            path = draw(st.sampled_from(sorted(state)))
            if what == "put":
                self.put(version, state, path, draw)
            elif what == "resize":
                shape = tuple(draw(lengths) for _ in state[path].data.shape)
                version[path].resize(shape)
                state[path] = state[path].resized(shape)
            elif what == "note":
                state[path].note = version[path].attrs["note"] = draw(st.integers(0, 3))
            elif what == "replace":
                state[path].data[...] = elements(state[path].dtype, state[path].data.shape, draw(seeds))
                version[path][...] = state[path].data
            else:
                del version[path]
                del state[path]

    def commit(self, file: Any, data: st.DataObject, parent: str | None) -> None:
        self.count += 1
        name = f"v{self.count}"
        chosen = parent if parent is not None else file.current_version
        state = {path: model.copy() for path, model in self.versions.get(chosen or "", {}).items()}
        with file.stage_version(name, parent, data.draw(st.sampled_from([True, True, False]))) as version:
            self.change(version, state, data.draw)
            for path, model in state.items():
                np.testing.assert_array_equal(plain(version[path][...]), plain(model.data))
            self.versions[name] = state  # set here, because a commit that is killed may have come far enough

    def parent(self, data: st.DataObject) -> str | None:
        return data.draw(st.sampled_from([None, None, "", *self.versions]))

    @rule(data=st.data(), count=st.integers(1, 2))
    def ours(self, data: st.DataObject, count: int) -> None:
        with self.opened() as file:
            for _ in range(count):
                self.commit(file, data, self.parent(data))

    @precondition(lambda self: self.versions)
    @rule(data=st.data())
    def theirs(self, data: st.DataObject) -> None:
        self.hand_over()
        with h5py.File(self.path, "r+") as file:
            self.commit(VersionedHDF5File(file), data, self.parent(data))

    @precondition(lambda self: len(self.versions) > 2)
    @rule(data=st.data())
    def theirs_deletes(self, data: st.DataObject) -> None:
        names = data.draw(st.sets(st.sampled_from(list(self.versions)), min_size=1, max_size=len(self.versions) - 1))
        self.hand_over()
        with h5py.File(self.path, "r+") as file:
            versioned_hdf5.delete_versions(file, sorted(names))
        for name in names:
            del self.versions[name]

    @precondition(lambda self: any(self.versions.values()))
    @rule(data=st.data())
    def theirs_stores_otherwise(self, data: st.DataObject) -> None:
        """versioned-hdf5's `modify_metadata`, which visits each object only once."""
        path = data.draw(st.sampled_from(sorted({path for state in self.versions.values() for path in state})))
        made = self.made[path]
        options: dict[str, Any] = {"chunks": data.draw(st.sampled_from(CHUNKS[len(made["chunks"])]))}
        self.hand_over()
        with h5py.File(self.path, "r+") as file:
            versioned_hdf5.modify_metadata(file, path, **options)
        made.update(options)

    @precondition(lambda self: self.versions)
    @rule(which=st.sampled_from(["rebuild_hashtables", "rebuild_object_dtype_hashtables"]))
    def theirs_rebuilds(self, which: str) -> None:
        """Chunks that no version shows lose their rows; then others lie beyond those that count."""
        self.hand_over()
        with h5py.File(self.path, "r+") as file:
            getattr(VersionedHDF5File(file), which)()
        with hs.VersionedFile(self.path, "r+") as ours:
            ours.repack()  # otherwise `verify` names what versioned-hdf5's next commit overwrites

    @precondition(lambda self: self.versions)
    @rule(data=st.data(), repack=st.booleans())
    def ours_deletes(self, data: st.DataObject, repack: bool) -> None:
        names = data.draw(st.sets(st.sampled_from(list(self.versions)), min_size=1, max_size=3))
        with self.opened() as file:
            file.delete_versions(names, repack=repack)
        for name in names:
            del self.versions[name]
        self.forget_what_is_nowhere()

    @precondition(lambda self: any(self.versions.values()))
    @rule(data=st.data(), repack=st.booleans())
    def ours_stores_otherwise(self, data: st.DataObject, repack: bool) -> None:
        path = data.draw(st.sampled_from(sorted({path for state in self.versions.values() for path in state})))
        made, options = self.made[path], {}
        if data.draw(st.booleans()):
            options["chunks"] = data.draw(st.sampled_from(CHUNKS[len(made["chunks"])]))
        if made["dtype"] != "text" and data.draw(st.booleans()):
            options.update({"compression": None, "compression_opts": None, "shuffle": False, "fletcher32": False})
            options.update(data.draw(st.sampled_from(CODECS)))
        for name, value in options.items():
            made.pop(name, None)
            if value:
                made[name] = value
        if made["dtype"] in ("f8", "i2", "bool", "enum") and data.draw(st.booleans()):
            fill = fill_of(made["dtype"], data.draw(st.sampled_from([0, 1])))
            options["fillvalue"] = fill
            for state in self.versions.values():
                if path in state:
                    model = state[path]
                    model.data[model.data == model.fill] = fill
                    model.fill = fill
            made["fill"] = fill
        with self.opened() as file:
            file.modify_metadata(path, repack=repack, **options)

    @precondition(lambda self: not self.borrowed)
    @rule(data=st.data(), last=st.integers(1, 60), part=st.sampled_from([0.0, 0.5, 1.0]))
    def ours_is_killed(self, data: st.DataObject, last: int, part: float) -> None:
        """Kill at a call to the disk, in a commit or a deletion: the file is as it was before, or as it is after."""
        self.let_go()
        deletes = bool(self.versions) and data.draw(st.booleans())
        before = self.versions, self.made
        self.versions, self.made = dict(self.versions), {path: dict(made) for path, made in self.made.items()}
        killed = Killed(last, part)
        try:
            with patch.object(writing, "SYSTEM", killed), hs.VersionedFile(self.path, "r+") as file:
                if deletes:
                    name = data.draw(st.sampled_from(list(self.versions)))
                    del self.versions[name]
                    file.delete_versions(name, repack=data.draw(st.booleans()))
                else:
                    self.commit(file, data, self.parent(data))
        except Exception:
            if killed.count < last:  # what a process does after its death does not count
                raise
        if set(hs.VersionedFile(self.path).versions) == set(self.versions):
            if deletes:
                self.forget_what_is_nowhere()
        else:
            assert killed.count >= last
            self.versions, self.made = before

    def forget_what_is_nowhere(self) -> None:
        """An array that no version has any more can be created again, in another way."""
        kept = {path for state in self.versions.values() for path in state}
        self.made = {path: made for path, made in self.made.items() if path in kept}

    @precondition(lambda self: not self.borrowed)
    @rule(data=st.data())
    def ours_fails(self, data: st.DataObject) -> None:
        state = {}
        try:
            with self.opened() as file, file.stage_version("failed") as version:
                state = {
                    path: model.copy() for path, model in self.versions.get(file.current_version or "", {}).items()
                }
                self.change(version, state, data.draw)
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass

    @invariant()
    def both_read_the_same(self) -> None:
        if not getattr(self, "versions", None):
            return
        names = set(self.versions)
        with hs.VersionedFile(self.path) as ours, patch.object(witness, "hired", hired):  # in a forked process
            verified = ours.verify()
            assert verified.is_whole, verified.damages
        with hs.VersionedFile(self.path) as ours, h5py.File(self.path, "r", locking=self.held is None) as file:
            theirs = VersionedHDF5File(file)
            assert set(ours.versions) == set(theirs.versions) == names
            assert ours.current_version in {None, *names}
            if len(names) > 1:
                before, after = sorted(names)[-2:]
                old, new = ({path: one.data for path, one in self.versions[name].items()} for name in (before, after))
                assert_difference(ours, before, after, old, new)
            for name in names:
                state = self.versions[name]
                found = {array.name.split(f"/{name}/", 1)[1] for array in ours[name].walk()}
                assert found == set(state)
                for path, model in state.items():
                    for who, side in (("ours", ours), ("theirs", theirs), ("held", self.held)):
                        if side is not None:
                            array = side[name][path]
                            np.testing.assert_array_equal(plain(array[()]), plain(model.data), f"{who}: {name} {path}")
                            assert array.attrs.get("note") == model.note, f"{who}: {name} {path}"


Versions.TestCase.settings = settings(
    max_examples=600 if ALL else 12,
    stateful_step_count=12 if ALL else 8,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would take minutes
    report_multiple_bugs=False,
)
TestVersions = pytest.mark.slow(Versions.TestCase)
