"""`verify`: checks that versions are as they were committed. Every chunk is read and hashed again, but only once,
however many versions share it. Every mapping, table of hashes and parent is checked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np

from hyperslab.archive.views import display_html
from hyperslab.archive.views.display import counted
from hyperslab.cached import cached_property
from hyperslab.errors import FileChanged, HyperslabError, ReadError
from hyperslab.journal import write_guard
from hyperslab.journal.journal import journal_path
from hyperslab.journal.settling import between_commits
from hyperslab.needed import missing
from hyperslab.progress import Progress
from hyperslab.quantities import nbytes_text
from hyperslab.versions.inspect import witness
from hyperslab.versions.inspect.chunk_maps import ChunkMap, ChunkMaps, VersionMap
from hyperslab.versions.inspect.chunk_stack import ChunkStack, chunk_stacks
from hyperslab.versions.inspect.rehash import rehashed
from hyperslab.versions.inspect.stored_bytes import StoredBytes
from hyperslab.versions.inspect.testimony import Testimony
from hyperslab.versions.layout.names import DATA_VERSION, FIRST_VERSION, VERSIONS
from hyperslab.versions.layout.padding import meaningful
from hyperslab.versions.layout.reading import parsed, stored_log
from hyperslab.versions.layout.refs import Branch, Refs, Tag
from hyperslab.versions.layout.slots import MISSING, Slots
from hyperslab.versions.layout.table import VersionTable

NO_WITNESS = str(missing("h5py"))
MOST_PROBLEMS = 1000  # to keep; all are counted
MOST_USERS = 8  # versions to name for a damaged chunk
GAPS = (
    "{} of its chunks do not have the hashes in the table. The hashes cover bytes between the fields, which mean "
    "nothing and which other software copies as they happen to be, so this proves neither damage nor soundness"
)


@dataclass(frozen=True)
class Damage:
    """Something that is not as it was committed. Fields that do not apply are None."""

    what: str
    array: str | None = None
    versions: tuple[str, ...] | None = None  # the versions that have it; for a chunk at most `MOST_USERS`
    chunk_index: tuple[int, ...] | None = None  # in the first of these versions


@dataclass
class Verification:
    """What was checked, and what is damaged."""

    path: str
    version_count: int = 0
    array_count: int = 0
    chunk_count: int = 0  # chunks read and hashed
    nbytes: int = 0  # of these chunks, decoded
    damages: list[Damage] = field(default_factory=list)  # at most `MOST_PROBLEMS`
    damage_count: int = 0
    unchecked: dict[str, str] = field(default_factory=dict)  # arrays whose chunks, or some, prove nothing, and why
    # Versions that are proved to be as hyperslab committed them; and why the others are not (only their chunks are).
    proved: list[str] = field(default_factory=list)
    unproved: dict[str, str] = field(default_factory=dict)
    uncommitted: list[str] = field(default_factory=list)  # versions begun but never committed, which is not damage
    refs: dict[str, str] = field(
        default_factory=dict
    )  # what other software did to branches and tags; this is no damage

    @property
    def is_whole(self) -> bool:
        """Whether no damage was found."""
        return self.damage_count == 0

    def _repr_html_(self) -> str:
        cells = (
            (
                one.what,
                one.array or "",
                ", ".join(one.versions or ()),
                "" if one.chunk_index is None else str(one.chunk_index),
            )
            for one in self.damages
        )
        found = "no damage" if self.is_whole else counted(self.damage_count, "damage", "damages")
        checked = [counted(self.version_count, "version", "versions"), counted(self.array_count, "array", "arrays")]
        checked += [counted(self.chunk_count, "chunk", "chunks"), f"{nbytes_text(self.nbytes)} decoded"]
        notes = [", ".join(checked)]
        notes += [f"{name} could not be hashed: {why}" for name, why in self.unchecked.items()]
        notes += [f"{name} is not proved: {why}" for name, why in self.unproved.items()]
        notes += [f"never committed: {name}" for name in self.uncommitted]
        notes += [f"{name}: {said}" for name, said in self.refs.items()]
        titles = ("damage", "array", "versions", "chunk") if self.damages else ()
        return display_html.rows("hyperslab.Verification", f"{self.path}: {found}", titles, cells, notes)

    def add(self, *damages: Damage) -> None:
        """Count damage, and keep the first reports."""
        self.damage_count += len(damages)
        self.damages += damages[: MOST_PROBLEMS - len(self.damages)]


def verify(
    path: str,
    table: VersionTable,
    names: Sequence[str] | None = None,
    progress: Progress | None = None,
    ask: witness.Ask | None = None,
) -> Verification:
    """Check versions of a file, by default all; see `VersionedFile.verify`.

    Checking all includes chunks that no version has, because a later version may find them by their hashes. `ask` asks
    a witness that was hired before; by default one is hired now.

    Raises
    ------
    FileChanged
        Another file replaced this one meanwhile.
    """
    verification = Verification(path)
    chosen = None if names is None else list(dict.fromkeys(names))
    with StoredBytes(path) as stored, nullcontext(ask) if ask is not None else witness.hired() as asking:
        heard = asking(path, chosen)
        uncertain = _verify(verification, table, names, progress or (lambda *_: None))
        known = list(table) if names is None else names
        _add_testimony(verification, known, uncertain, heard() or Testimony(unproved=dict.fromkeys(known, NO_WITNESS)))
        stored.check()
    return verification


def _add_testimony(
    verification: Verification, names: Sequence[str], uncertain: dict[str, str], heard: Testimony
) -> None:
    """Add whether HDF5's own library sees the same, and whether fingerprints agree.

    `uncertain` has the versions whose chunks are not all good, and why; no fingerprint proves these.
    """
    known = {damage.array for damage in verification.damages if damage.array is not None}
    for what, array, users in heard.damages:
        if array not in known or not what.startswith("HDF5"):  # of course it cannot read what is damaged
            verification.add(Damage(what, array, None if users is None else tuple(users)))
    verification.unproved = heard.unproved
    if heard.silence is not None:
        verification.unproved = {name: heard.silence for name in names if name not in heard.proved} | heard.unproved
    for damage in verification.damages:
        uncertain.update((name, f"it is damaged: {damage.what}") for name in damage.versions or ())
    verification.unproved.update((name, uncertain[name]) for name in heard.proved if name in uncertain)
    verification.proved = [name for name in heard.proved if name not in uncertain]


def _verify(
    verification: Verification, table: VersionTable, names: Sequence[str] | None, progress: Progress
) -> dict[str, str]:
    """Check all except the fingerprints. Returns the versions whose chunks are not all good, and why."""
    path, holders = verification.path, dict[str, list[str]]()
    stacks, problems = chunk_stacks(path)
    checked = list(table) if names is None else list(dict.fromkeys(names))
    _check_parents(verification, table, checked)
    if names is None:
        _check_bookkeeping(verification, table)
        _check_refs(verification, table)
        verification.add(*(Damage(problem, array) for array, problem in problems.items()))
    with between_commits(path):
        if write_guard.is_set_in(path):
            remedy = f"put it back as {journal_path(path)}, or use `hyperslab versions repair`"
            verification.add(Damage(f"{write_guard.UNFINISHED}: {remedy}"))
    uses = {array: _Uses(stack) for array, stack in stacks.items()}
    for described in ChunkMaps(path).each(checked):
        verification.version_count += 1
        _check_version(verification, described, uses, problems)
        for array in described.arrays:
            holders.setdefault(array, []).append(described.name)
    if names is None:
        for use in uses.values():
            use.add_unreferenced()
    damaged, unproved = _check_chunks(verification, table, uses, progress)
    uncertain: dict[str, str] = {}
    for array, why in verification.unchecked.items():
        uncertain.update(
            (name, f"the chunks of {array} could not be checked: {why}") for name in holders.get(array, ())
        )
    if unproved:
        _, users = _named(path, {array: dict.fromkeys(slots, "") for array, slots in unproved.items()}, checked)
        verification.unchecked |= {array: GAPS.format(len(slots)) for array, slots in unproved.items()}
        uncertain |= dict.fromkeys(users, "hashes of its chunks cover bytes that mean nothing, so they prove nothing")
    if damaged:
        damages, users = _named(path, damaged, checked)
        verification.add(*damages)
        uncertain |= dict.fromkeys(users, "some of its chunks are damaged")
    return uncertain


def _check_parents(verification: Verification, table: VersionTable, names: Sequence[str]) -> None:
    good: set[str | None] = {None}
    for name in names:
        way: dict[str | None, None] = {}
        at: str | None = name
        while at not in good and at not in way and at in table:
            way[at] = None
            at = table[at].parent  # type: ignore[index]
        if at in way:
            verification.add(Damage("its ancestors form a circle", versions=(name,)))
        elif at not in good:
            verification.add(Damage(f"its parent {at!r} does not exist", versions=(next(reversed(way)) or name,)))
        good |= way.keys()


def _check_bookkeeping(verification: Verification, table: VersionTable) -> None:
    """Check that the current version exists, and find the versions that were never committed."""
    versions = parsed(verification.path, 0, (f"{VERSIONS}/*",))[VERSIONS]
    verification.uncommitted = [name for name in versions if name not in table and name != FIRST_VERSION]
    current = versions.attrs.get("current_version")
    expected = FIRST_VERSION if table.current is None else table.current
    if current != expected and current not in verification.uncommitted:
        verification.add(Damage(f"the file names {current!r} as the current version, which does not exist"))


def _check_refs(verification: Verification, table: VersionTable) -> None:
    """Check that each branch and tag names a version, or one that was deleted."""
    try:
        refs = Refs.of(stored_log(verification.path))
    except HyperslabError:
        return  # the list of fingerprints cannot be read, which is reported with these
    verification.add(*map(Damage, refs.faults(table)))
    known: list[Branch | Tag] = [*refs.all_branches(table).values(), *refs.all_tags(table).values()]
    verification.refs = {one.name: one.problem for one in known if one.problem is not None}


class _Uses:
    """Which chunks of an array are to be hashed, and with which shapes."""

    def __init__(self, stack: ChunkStack) -> None:
        self.stack = stack
        self.shapes: dict[int, dict[tuple[int, ...], None]] = {}
        self.full = np.zeros(stack.slot_count, bool)
        self.guessed: set[int] = set()
        self.seen: dict[int, str | None] = {}
        self.kept: list[ChunkMap] = []  # keeps the ids in `seen` from being used again
        self.row_of: Slots = np.full(stack.slot_count, MISSING, np.int64)
        self.problems: list[str] = []
        self._index_rows()

    def _index_rows(self) -> None:
        stack, length = self.stack, self.stack.chunk_shape[0]
        try:
            spans = stack.rows["shape"]
        except HyperslabError as error:
            self.problems.append(str(error))
            return
        starts, stops = spans[:, 0], spans[:, 1]
        is_good = (starts % length == 0) & (starts >= 0) & (stops > starts) & (stops - starts <= length)
        is_good &= starts // length < stack.slot_count
        bad = np.flatnonzero(~is_good)
        if len(bad):
            said = f"{len(bad)} rows of its hash table belong to no chunk"
            self.problems.append(f"{said}, the first is row {bad[0]}: {spans[bad[0]].tolist()}")
        is_known = stack.rows["hash"].any(axis=1)  # a hash of zeros marks an unused slot
        rows = np.flatnonzero(is_good & is_known)
        slots = starts[rows] // length
        self.row_of[slots] = rows
        _, counts = np.unique(slots, return_counts=True)
        if (counts > 1).any():
            self.problems.append(f"{int((counts > 1).sum())} of its chunks have several rows in its hash table")

    def check(self, array: ChunkMap) -> str | None:
        """Note the chunks of a version's array. Returns what is wrong with its mappings."""
        if array.slots is None:
            return None
        if id(array) not in self.seen:
            self.kept.append(array)
            self.seen[id(array)] = self._taken(array)
        return self.seen[id(array)]

    def _taken(self, array: ChunkMap) -> str | None:
        assert array.slots is not None
        stack, used = self.stack, array.used_slots
        if array.chunk_shape != stack.chunk_shape:
            return f"the version gives it chunks of {array.chunk_shape}, but they are stored as {stack.chunk_shape}"
        raw = stack.raw
        if array.dtype != raw.dtype and not raw.unsupported:
            return f"the version gives it elements of {array.dtype}, but they are stored as {raw.dtype}"
        fill = meaningful(raw.fill_bytes, raw.dtype)
        if array.fill != (fill if any(fill) else b"") and not raw.dtype.hasobject:
            return "its fill value is not that of its chunks"
        outside = used[used >= stack.slot_count]
        if len(outside):
            return f"{len(outside)} mappings lead to chunks that do not exist, the first to chunk {outside[0]}"
        full = np.ones((), bool)
        for length, chunk, count in zip(array.shape, array.chunk_shape, array.grid_shape, strict=True):
            full = np.logical_and.outer(full, (np.arange(count) + 1) * chunk <= length)
        is_stored = array.slots != MISSING
        self.full[array.slots[is_stored & full.reshape(-1)]] = True
        self._add_edges(array, np.flatnonzero(is_stored & ~full.reshape(-1)))
        nameless = used[self.row_of[used] == MISSING]
        if len(nameless):
            return f"{len(nameless)} of its chunks have no hash, the first is chunk {nameless[0]}"
        beyond = used[used >= stack.count]
        if len(beyond):
            return (
                f"{len(beyond)} of its chunks lie beyond the {stack.count} that count: the next commit of"
                " versioned-hdf5 overwrites them, but one of hyperslab makes them count"
            )
        return None

    def _add_edges(self, array: ChunkMap, edges: Slots) -> None:
        if not len(edges):
            return
        assert array.slots is not None
        starts = np.stack(np.unravel_index(edges, array.grid_shape), axis=1) * array.chunk_shape
        shapes = np.minimum(np.asarray(array.shape) - starts, array.chunk_shape)
        for slot, shape in zip(array.slots[edges].tolist(), map(tuple, shapes.tolist()), strict=True):
            self.shapes.setdefault(slot, {})[shape] = None

    def add_unreferenced(self) -> None:
        """Note the chunks that have a hash but are in no version; only one length of their shapes is known."""
        stack = self.stack
        inner = {shape[1:]: None for shapes in self.shapes.values() for shape in shapes} | {stack.chunk_shape[1:]: None}
        for slot in np.flatnonzero((self.row_of != MISSING) & ~self.full).tolist():
            if slot not in self.shapes:
                start, stop = stack.rows["shape"][self.row_of[slot]].tolist()
                self.shapes[slot] = {(stop - start, *rest): None for rest in inner}
                self.guessed.add(slot)

    @cached_property
    def slots(self) -> Slots:
        """The chunks to hash: those that are used and have a hash."""
        is_used = self.full.copy()
        for slot, shapes in self.shapes.items():
            is_used[slot] = True
            if self.full[slot]:
                shapes[self.stack.chunk_shape] = None
        return np.flatnonzero(is_used & (self.row_of != MISSING))


def _check_version(
    verification: Verification, described: VersionMap, uses: dict[str, _Uses], problems: dict[str, str]
) -> None:
    name = (described.name,)
    verification.add(*(Damage(problem, path, name) for path, problem in described.problems.items()))
    for path, array in described.arrays.items():
        verification.array_count += 1
        if array.problem is not None:
            verification.add(Damage(array.problem, path, name))
        if path not in uses:
            verification.add(Damage(problems.get(path, "its chunks, or their hashes, are missing"), path, name))
            continue
        problem = uses[path].check(array)
        if problem is not None:
            verification.add(Damage(problem, path, name))


def _check_chunks(
    verification: Verification, table: VersionTable, uses: dict[str, _Uses], progress: Progress
) -> tuple[dict[str, dict[int, str]], dict[str, list[int]]]:
    """Hash the chunks again. Returns what is damaged, by array and slot, and the slots of which nothing is proved."""
    waiting = {path: use.slots for path, use in uses.items()}
    expected = sum(map(len, waiting.values()))
    damaged: dict[str, dict[int, str]] = {}
    unproved: dict[str, list[int]] = {}
    for path, use in uses.items():
        slots, stack = waiting[path], use.stack
        verification.add(*(Damage(problem, path) for problem in use.problems))
        if not len(slots):
            continue
        if table.data_version < DATA_VERSION and stack.raw.dtype.hasobject:
            verification.unchecked[path] = f"text was hashed in another way before data_version {DATA_VERSION}"
            continue
        before = verification.chunk_count
        try:
            for batch in rehashed(stack, slots, use.row_of, use.shapes, use.guessed):
                if batch.problems:
                    damaged.setdefault(path, {}).update(batch.problems)
                if batch.unproved:
                    unproved.setdefault(path, []).extend(batch.unproved)
                verification.chunk_count = before + batch.done
                progress(path, verification.chunk_count, expected)
        except FileChanged:
            raise
        except ReadError as error:
            verification.unchecked[path] = str(error)
        nbytes = stack.raw.dtype.itemsize * math.prod(stack.chunk_shape)
        verification.nbytes += (verification.chunk_count - before) * nbytes
    return damaged, unproved


def _named(path: str, damaged: dict[str, dict[int, str]], names: Sequence[str]) -> tuple[list[Damage], set[str]]:
    """Damaged chunks with versions that use them, which takes a second pass; and all versions that use any."""
    all_users: set[str] = set()
    users: dict[tuple[str, int], tuple[list[str], list[tuple[int, ...]]]] = {}
    for described in ChunkMaps(path).each(names):
        for array, slots in damaged.items():
            one = described.arrays.get(array)
            if one is None or one.slots is None:
                continue
            for number in np.flatnonzero(np.isin(one.slots, list(slots))).tolist():
                all_users.add(described.name)
                versions, indices = users.setdefault((array, int(one.slots[number])), ([], []))
                if described.name not in versions and len(versions) < MOST_USERS:
                    versions.append(described.name)
                    indices.append(tuple(int(index) for index in np.unravel_index(number, one.grid_shape)))
    damages = []
    for array, slots in damaged.items():
        for slot, problem in slots.items():
            versions, indices = users.get((array, slot), ([], []))
            damages.append(Damage(f"chunk {slot}: {problem}", array, tuple(versions), indices[0] if indices else None))
    return damages, all_users
