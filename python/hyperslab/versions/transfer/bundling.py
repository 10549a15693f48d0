"""`write_bundle`: a file with the versions that another file lacks, and the chunks that only they have.

A bundle is an HDF5 file. `said` is one record like those of the list of fingerprints: it names the versions with their
parents, shapes and marks, the branches and tags, and the versions that a file must have to take the bundle.
`versions/N` has the groups, the users' attributes, and for each array the chunks that differ from those of the parent:
number and hash. `stacks/N/raw` has the chunks that the other file lacks, as they are stored, and `stacks/N/hashes`
their hashes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import numpy.typing as npt

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.archive.tree.group import Group
from hyperslab.errors import DamagedFile
from hyperslab.journal.locks import shared
from hyperslab.journal.signals import raise_pending_signals
from hyperslab.replacing import replacing
from hyperslab.versions.branching.ancestry import children_first
from hyperslab.versions.inspect.chunk_maps import ChunkMap, ChunkMaps
from hyperslab.versions.inspect.chunk_stack import ChunkStack, chunk_stacks
from hyperslab.versions.layout.fingerprint_log import packed
from hyperslab.versions.layout.fingerprints import content, keys_of
from hyperslab.versions.layout.names import ARRAY_BOOKKEEPING, DATA, VERSION_BOOKKEEPING
from hyperslab.versions.layout.reading import version_group
from hyperslab.versions.layout.refs import MAIN, Refs, Target, target_of
from hyperslab.versions.layout.slots import MISSING, Slots
from hyperslab.versions.layout.table import VersionTable
from hyperslab.versions.rewrite.deletion import created_like, stored_chunks
from hyperslab.versions.transfer.portable import portable

MARK, FORMAT = "hyperslab_bundle", 1
CHANGED = np.dtype([("number", "<i8"), ("hash", "u1", (32,))])
BATCH = 1024  # chunks of text to write at a time
NOTHING = bytes(32)


class Wanted(NamedTuple):
    """The branches and tags to send, with the versions that they name; and other versions."""

    branches: Mapping[str, Target]
    tags: Mapping[str, tuple[Target, Mapping[str, Any]]]
    others: tuple[Target, ...]

    @classmethod
    def of(cls, table: VersionTable, refs: Refs, names: Iterable[str]) -> Wanted:
        """Some branches, tags and versions of a file, by their names; all branches and tags if none is named.

        Raises
        ------
        KeyError
            There is no such branch, tag or version, or it is dangling.
        """
        branches = {name: one.version for name, one in refs.all_branches(table).items() if one.version is not None}
        tags = {name: one.version for name, one in refs.all_tags(table).items() if one.version is not None}
        chosen = list(names)
        rest = [name for name in chosen if name not in branches and name not in tags]
        others = [target_of(table.find(refs.find(name, table) or name), table) for name in rest]
        mine = {name: one for name, one in branches.items() if not chosen or name in chosen}
        named = {name: one for name, one in tags.items() if not chosen or name in chosen}
        return cls(
            {name: target_of(one, table) for name, one in mine.items()},
            {name: (target_of(one, table), refs.tags[name][1]) for name, one in named.items()},
            tuple(others),
        )

    @property
    def targets(self) -> list[Target]:
        """All versions that are named."""
        return [*self.branches.values(), *(target for target, _ in self.tags.values()), *self.others]


@dataclass
class _Stack:
    """The chunks of an array, and which of them go into the bundle."""

    number: int
    stack: ChunkStack
    digests: npt.NDArray[np.uint8]  # by slot; zeros where there is none
    keys: Slots
    is_known: npt.NDArray[np.bool_]  # by slot: the other file has it
    slots: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, number: int, stack: ChunkStack, known: Set[bytes]) -> _Stack:
        """The chunks of an array, some of whose hashes the other file has."""
        rows, length = stack.rows, stack.chunk_shape[0]
        digests = np.zeros((stack.slot_count, 32), np.uint8)
        slots = rows["shape"][:, 0] // length
        good = (slots >= 0) & (slots < stack.slot_count)
        digests[slots[good]] = rows["hash"][good]
        is_known = (
            np.array([one.tobytes() in known for one in digests], bool) if known else np.zeros(len(digests), bool)
        )
        return cls(number, stack, digests, keys_of(rows, length), is_known)

    @property
    def chunk_nbytes(self) -> int:
        """The bytes of a chunk in memory; of text only those of its pointers."""
        return math.prod(self.stack.chunk_shape) * self.stack.raw.dtype.itemsize

    def take(self, slots: Slots, path: str) -> npt.NDArray[np.uint8]:
        """The hashes of chunks, which go into the bundle if the other file lacks them."""
        slots = np.unique(slots[slots != MISSING])
        if len(slots) and (int(slots[-1]) >= len(self.digests) or not self.digests[slots].any(axis=1).all()):
            said = f"{path} of {self.stack.raw.filename} has chunks without a hash"
            raise DamagedFile(f"{said}: `hyperslab versions verify` says more, and `repair` helps")
        self.slots += slots[~self.is_known[slots]].tolist()
        self.is_known[slots] = True
        return self.digests


def unsent(table: VersionTable, refs: Refs, wanted: Wanted, have: Set[Target]) -> list[str]:
    """The versions to send to a file that has some, each after its parents."""
    names = reversed(children_first([one.version for one in wanted.targets], table, refs))
    return [name for name in names if target_of(name, table) not in have]


def write_bundle(
    table: VersionTable,
    refs: Refs,
    wanted: Wanted,
    output: Path,
    have: Set[Target],
    known: Mapping[str, Set[bytes]] | None = None,
    most_nbytes: int | None = None,
) -> dict[str, Any]:
    """Write what a file lacks that has some versions.

    Parameters
    ----------
    table, refs
        The versions of the file to read, with its branches and tags.
    wanted
        The branches and tags to send.
    output
        The bundle.
    have
        The versions that the other file has.
    known
        The hashes of the chunks that it has, by the path of the array; by default those of the versions that it must
        have.
    most_nbytes
        The bundle ends with the version whose chunks exceed this, decoded; what remains goes into another one.

    Returns
    -------
    dict[str, Any]
        What the bundle says.

    Raises
    ------
    DamagedFile
        A version cannot be read.
    """
    sent = unsent(table, refs, wanted, have)
    around = {parent for name in sent for parent in refs.parents_of(name, table)}
    around |= {one.version for one in wanted.targets}
    needs = sorted(around - set(sent))
    with (
        shared(table.path),
        replacing(output) as beside,
        h5py.File(beside, "w") as made,
        h5py.File(table.path) as source,
    ):
        bundling = _Bundling(table, made, source, needs, known)
        versions = []
        for number, name in enumerate(sent):
            versions.append(bundling.version(number, name, refs))
            if most_nbytes is not None and bundling.nbytes > most_nbytes:
                break
        bundling.write_stacks()
        said = {
            "needs": [list(target_of(name, table)) for name in needs],
            "versions": versions,
            "branches": {name: list(target) for name, target in wanted.branches.items()},
            "tags": {name: {**texts, "target": list(target)} for name, (target, texts) in wanted.tags.items()},
            "checked_out": refs.checked_out if refs.is_explicit else MAIN,
            "stacks": {path: one.number for path, one in bundling.stacks.items()},
            "chunk_count": sum(len(one.slots) for one in bundling.stacks.values()),
        }
        made.create_dataset("said", data=np.frombuffer(packed(said), np.uint8))
        made.attrs[MARK] = FORMAT
    return said


@dataclass
class _Bundling:
    table: VersionTable
    made: h5py.File
    source: h5py.File
    needs: list[str]
    known: Mapping[str, Set[bytes]] | None

    def __post_init__(self) -> None:
        self._maps = ChunkMaps(self.table.path)
        self._all, self._problems = chunk_stacks(self.table.path)
        self.stacks: dict[str, _Stack] = {}

    @property
    def nbytes(self) -> int:
        """The bytes of the chunks so far, decoded."""
        return sum(len(one.slots) * one.chunk_nbytes for one in self.stacks.values())

    def version(self, number: int, name: str, refs: Refs) -> dict[str, Any]:
        """Write a version. Returns what is said of it."""
        raise_pending_signals()
        described, own = self._maps[name], version_group(self.table.path, name, 0)
        for path, problem in described.problems.items():
            raise DamagedFile(f"{path!r} of version {name!r} of {self.table.path}: {problem}")
        parent = self.table[name].parent
        before = self._maps[parent].arrays if parent is not None and parent in self.table else {}
        group = self.made.create_group(f"versions/{number}", track_order=True)
        _write_attributes(group, own, VERSION_BOOKKEEPING)
        for path in sorted(described.groups):
            _write_attributes(group.require_group(path), own[path], ())
        arrays = {}
        for path, array in sorted(described.arrays.items()):
            if array.problem is not None or array.slots is None:
                raise DamagedFile(f"{path} in version {name!r} of {self.table.path}: {array.problem}")
            arrays[path], rows = self._array(path, array, before.get(path))
            holder = group.require_group(path.rpartition("/")[0]) if "/" in path else group
            written = holder.create_dataset(path.rpartition("/")[2], data=rows)
            _write_attributes(written, own[path], ARRAY_BOOKKEEPING)
        merged = refs.merged.get(target_of(name, self.table))
        return {
            "target": list(target_of(name, self.table)),
            "parent": None if parent is None or parent not in self.table else list(target_of(parent, self.table)),
            "merged": None if merged is None else list(merged),
            "groups": sorted(described.groups),
            "arrays": arrays,
        }

    def _array(self, path: str, array: ChunkMap, before: ChunkMap | None) -> tuple[dict[str, Any], Any]:
        """What is said of an array, and its chunks that differ from those of the parent."""
        assert array.slots is not None
        is_like = before is not None and before.slots is not None and before.chunk_shape == array.chunk_shape
        is_whole = not is_like or before is None or before.shape != array.shape
        numbers = np.flatnonzero(array.slots != MISSING if is_whole or before is None else array.slots != before.slots)
        rows = np.zeros(len(numbers), CHANGED)
        rows["number"] = numbers
        slots, mark = array.slots[numbers], ""
        if path in self._all:
            stack = self._stack(path)
            digests = stack.take(array.slots if is_whole else slots, path)
            stored = slots != MISSING
            rows["hash"][stored] = digests[slots[stored]]
            mark = content(array.shape, array.slots, stack.keys).hex()
        elif (array.slots != MISSING).any():
            raise DamagedFile(
                f"the chunks of {path!r} in {self.table.path} are missing: {self._problems.get(path, '')}"
            )
        said = {"shape": list(array.shape), "is_whole": is_whole, "content": mark}
        return said, rows

    def _stack(self, path: str) -> _Stack:
        if path not in self.stacks:
            stack = self._all[path]
            known = frozenset[bytes]() if self.known is None else self.known.get(path, frozenset())
            made = _Stack.of(len(self.stacks), stack, known)
            for name in self.needs if self.known is None else ():
                array = self._maps[name].arrays.get(path)
                if array is not None and array.slots is not None:
                    made.is_known[array.used_slots[array.used_slots < len(made.is_known)]] = True
            self.stacks[path] = made
        return self.stacks[path]

    def write_stacks(self) -> None:
        """Write the chunks that the other file lacks."""
        for path, one in self.stacks.items():
            old = self.source[f"{DATA}/{path}/raw_data"]
            group = self.made.create_group(f"stacks/{one.number}")
            slots, length = np.array(sorted(one.slots), np.int64), old.chunks[0]
            raw = created_like(group, "raw", old, (len(slots) * length, *old.shape[1:]))
            if one.stack.raw.dtype.hasobject:
                for row, slot in enumerate(slots.tolist()):
                    raise_pending_signals()
                    raw[row * length : (row + 1) * length] = old[slot * length : (slot + 1) * length]
            else:
                origin = (0,) * (raw.ndim - 1)
                for row, stored, mask in stored_chunks(self.table.path, path, old, slots):
                    raw.id.write_direct_chunk((row * length, *origin), stored, mask)
            group.create_dataset("hashes", data=one.digests[slots])


def _write_attributes(made: Any, old: Group | ArchiveArray, leave: tuple[str, ...]) -> None:
    for name, value in portable(old.attrs, leave).items():
        made.attrs[name] = value
