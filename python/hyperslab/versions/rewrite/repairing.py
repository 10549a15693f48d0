"""`repair`: writes a new file with all versions of a damaged file that are proved to be good."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from h5py import h5z

from hyperslab._core import ChunkGrid, filters_of
from hyperslab.archive.far.remote import SourceResolver
from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.archive.tree.group import Group, root_of
from hyperslab.archive.tree.open_file import OpenFile
from hyperslab.archive.views import display_html
from hyperslab.errors import DamagedFile, MissingJournal, StaleJournal, UsageError
from hyperslab.journal.journal import journal_path
from hyperslab.journal.journaled_file import JournaledFile
from hyperslab.journal.write_guard import UNFINISHED, is_set_in
from hyperslab.storage.hdf5_plugins import has_codec
from hyperslab.versions.commit.attributes import as_in_hdf5
from hyperslab.versions.commit.codec_options import codec_options
from hyperslab.versions.file import VersionedFile
from hyperslab.versions.layout.elements import fill_element
from hyperslab.versions.layout.fingerprint_log import LOG, Recorded
from hyperslab.versions.layout.names import (
    ARRAY_BOOKKEEPING,
    DATA,
    DATA_VERSION,
    FIRST_VERSION,
    VERSION_BOOKKEEPING,
    parsed_time,
)
from hyperslab.versions.layout.reading import check_is_file
from hyperslab.versions.layout.refs import Refs
from hyperslab.versions.layout.slots import MISSING
from hyperslab.versions.layout.table import data_version_of, group_of_versions, is_committed
from hyperslab.versions.rewrite.damaged_versions import (
    Child,
    Found,
    below,
    children,
    if_readable,
    parents_first,
    replaced,
)
from hyperslab.versions.rewrite.evidence import READING, Evidence, Shape
from hyperslab.versions.rewrite.fitting import Fitting, Placed, stored_list
from hyperslab.versions.stage.staged_array import StagedArray
from hyperslab.versions.stage.staged_group import StagedGroup

OTHER = "it is not what was committed with this version, as its fingerprint says"


@dataclass(frozen=True)
class Loss:
    """What is not in the repaired file: a version, or an array or group of one, and why."""

    version: str
    path: str | None
    reason: str

    def __str__(self) -> str:
        where = self.version if self.path is None else f"{self.version}: {self.path}"
        return f"{where}: {self.reason}"


@dataclass(frozen=True)
class Repair:
    """The result of a repair.

    Attributes
    ----------
    output
        The new file.
    versions
        The versions in it, oldest first.
    lost
        What is not in it, and why.
    notes
        Other differences in the versions that are in it.
    mended_chunk_count
        The number of chunks that were found in another slot than they should be in.
    """

    output: Path
    versions: list[str] = field(default_factory=list)
    lost: list[Loss] = field(default_factory=list)
    notes: list[Loss] = field(default_factory=list)
    mended_chunk_count: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether nothing was lost."""
        return not self.lost

    def _repr_html_(self) -> str:
        known = [("versions", f"{len(self.versions):,}"), ("lost", f"{len(self.lost):,}")]
        known += [("chunks found in another slot", f"{self.mended_chunk_count:,}")]
        known += [("lost", str(one)) for one in self.lost] + [("different", str(one)) for one in self.notes]
        return display_html.facts("hyperslab.Repair", str(self.output), known)


class Shown(NamedTuple):
    """What an array of a version shows: its shape, and the proved slot of each chunk."""

    shape: Shape
    slots: dict[Shape, tuple[int, Shape]]  # by chunk index: slot and valid shape


def repair(path: str | os.PathLike[str], output: str | os.PathLike[str], *, keep_unproved: bool = False) -> Repair:
    """Write everything in a damaged file of versions that is proved to be good to a new file. The old file does not
    change.

    An array of a version is good if its mappings and all chunks that they show can be read, and if each chunk has the
    SHA-256 that was stored. Chunks that an interrupted deletion moved are found by their SHA-256. If the version has a
    fingerprint, the array is also what was committed: other mappings in the file replace those that show other chunks.

    Parameters
    ----------
    path : str or os.PathLike
        The damaged file.
    output : str or os.PathLike
        The new file.
    keep_unproved : bool
        Whether to keep also what can be read but cannot be proved.

    Returns
    -------
    Repair
        What is in the new file, and what was lost.

    Raises
    ------
    FileNotFoundError
        The damaged file does not exist.
    UsageError
        `output` exists already, or `path` is a folder or a pipe.
    ReadError
        Not even the names of the versions can be read.
    """
    check_is_file(os.fspath(path))
    if os.path.lexists(output):
        raise UsageError(f"{os.fspath(output)} exists already: choose another name for the repaired file")
    with _recovered(os.path.abspath(path)) as (readable, notes):  # noqa: PTH100
        root = root_of(OpenFile(readable, 0, SourceResolver(), (f"{DATA}/**", LOG)))
        try:
            repaired = Repairing(root, Path(output), keep_unproved).done()
            repaired.notes[:0] = notes
            return repaired
        except BaseException:
            Path(output).unlink(missing_ok=True)  # half a file would look like all that could be saved
            raise


@contextmanager
def _recovered(path: str) -> Iterator[tuple[str, list[Loss]]]:
    """The file itself, or, if a commit was cut short, a copy in which that commit is finished; and notes on it."""
    if not Path(journal_path(path)).is_file():
        yield path, [Loss("all", None, UNFINISHED)] if is_set_in(path) else []
        return
    with tempfile.TemporaryDirectory(prefix="hyperslab-repair-") as folder:
        copy = str(Path(folder) / Path(path).name)
        shutil.copyfile(path, copy)
        shutil.copyfile(journal_path(path), journal_path(copy))
        notes = []
        try:
            JournaledFile(copy).close()
        except MissingJournal:
            notes = [Loss("all", None, UNFINISHED)]
            Path(journal_path(copy)).unlink()
        except StaleJournal:
            notes = [Loss("all", None, f"{journal_path(path)} does not belong to the file as it is, and was ignored")]
            Path(journal_path(copy)).unlink()
        yield copy, notes


class Repairing:
    """Goes through the versions of a damaged file, oldest first."""

    def __init__(self, root: Group, output: Path, keep_unproved: bool) -> None:
        self._root = root
        self._keep_unproved = keep_unproved
        self._evidence: dict[str, Evidence | str] = {}
        self._shown: dict[str, dict[str, Shown]] = {}
        self._mended: set[tuple[str, int]] = set()
        self._left_out: dict[str, list[int]] = {}  # by path, the filters that HDF5 cannot encode with on this machine
        self._repair = Repair(output)
        self._recorded, self._refs = self._listed()
        self._fitting = Fitting(root, self._recorded, {})

    def done(self) -> Repair:
        """Write the new file."""
        versions, current = self._versions()
        parents = {one.name: one.parent for one in versions}
        order = sorted(versions, key=lambda one: (one.time, one.name))
        self._fitting = Fitting(self._root, self._recorded, {one.name: one.time for one in versions})
        if self._fitting.problem is not None:
            self._repair.notes.append(Loss("all", None, f"{self._fitting.problem}: they prove nothing here"))
        if self._refs.problem is not None:
            self._repair.notes.append(Loss("all", None, self._refs.problem))
        self._find_interruption(order)
        with VersionedFile(self._repair.output, "w") as file:
            for one in parents_first(order):
                self._write(file, one, parents)
            while current not in (None, FIRST_VERSION) and current not in file:
                current = parents.get(current)
            latest = current if current in file else (file.versions[-1] if len(file) else None)
            if latest is not None and file.current_version != latest:
                file.current_version = latest
            for name, reason in file.restore_refs(self._refs).items():
                self._lose(name, None, reason)
            self._repair.versions.extend(file.versions)
        for path, numbers in self._left_out.items():
            first = next((name for name, shown in self._shown.items() if path in shown), "")
            said = f"HDF5 cannot encode with filter {', '.join(map(str, numbers))} on this machine"
            self._repair.notes.append(Loss(first, path, f"{said}: stored without it, in all versions"))
        return Repair(
            self._repair.output, self._repair.versions, self._repair.lost, self._repair.notes, len(self._mended)
        )

    def _versions(self) -> tuple[list[Found], Any]:
        """The versions that were committed, and the name of the current one."""
        versions = group_of_versions(self._root)
        listed, uncommitted = [], set()
        number = self._data_version(versions)
        for name in versions:
            if name == FIRST_VERSION:
                continue
            try:
                group = versions[name]
                if not isinstance(group, Group):
                    raise DamagedFile("it is not a group")
                attributes = dict(group.attrs.items())
                if not is_committed(attributes, name, self._root.filename, number):
                    uncommitted.add(name)
                    self._lose(name, None, "it was never committed")
                    continue
                time = parsed_time(str(attributes["timestamp"]))
                listed.append(Found(name, group, str(attributes["prev_version"]), time))
            except UsageError:
                raise
            except READING as error:
                self._lose(name, None, str(error))
        for one in listed:
            if one.parent in uncommitted:
                reason = f"it was made from {one.parent!r}, which was never committed: arrays may be missing"
                self._repair.notes.append(Loss(one.name, None, reason))
        return listed, self._current(versions)

    @staticmethod
    def _current(versions: Group) -> str | None:
        try:
            return str(versions.attrs["current_version"])
        except UsageError:
            raise
        except READING:
            return None

    @staticmethod
    def _data_version(versions: Group) -> int:
        try:
            return data_version_of(versions.attrs)
        except UsageError:
            raise
        except READING:
            return DATA_VERSION

    def _listed(self) -> tuple[Recorded, Refs]:
        """The fingerprints, and the branches and tags, as far as they can be read. The list is read once."""
        try:
            stored = stored_list(self._root)
        except DamagedFile as error:
            return Recorded(problem=str(error)), Refs(problem=f"branches and tags: {error}")
        return Recorded.of(stored), Refs.of(stored)

    def _lose(self, version: str, path: str | None, reason: str) -> None:
        self._repair.lost.append(Loss(version, path, reason))

    def _evidence_of(self, path: str) -> Evidence:
        if path not in self._evidence:
            try:
                self._evidence[path] = Evidence(self._root, path)
            except UsageError:
                raise
            except READING as error:
                self._evidence[path] = f"its chunks cannot be read: {error}"
        evidence = self._evidence[path]
        if isinstance(evidence, str):
            raise DamagedFile(evidence)
        return evidence

    def _find_interruption(self, versions: list[Found]) -> None:
        """Look for signs of an interrupted deletion.

        versioned-hdf5 goes through the arrays by their names. In the arrays before the one that it reached, versions
        that it was going to delete now show other chunks. Only fingerprints tell these from the right ones.
        """
        for one in versions:
            found = dict(below(one.group, ""))
            for path, child in found.items():
                old = replaced(self._root, path)
                with if_readable():
                    self._note(old or path, child, None if old in found else one.name, is_torn=old is not None)
        for one in versions:
            for path, child in children(self._root, one):
                with if_readable():
                    if self._fitting.shows_interruption(one.name, path):
                        self._evidence_of(path).is_torn = True
                    if isinstance(child, ArchiveArray):
                        self._proved(one, path, child)
        known = {path: evidence for path, evidence in self._evidence.items() if isinstance(evidence, Evidence)}
        reached = [path.split("/") for path, evidence in known.items() if evidence.is_moved or evidence.is_torn]
        for path, evidence in known.items():
            if reached and not evidence.is_moved and path.split("/") <= max(reached):
                evidence.is_torn = True

    def _note(self, path: str, child: Child, version: str | None, *, is_torn: bool) -> None:
        """Note what an array shows, and in which version."""
        if isinstance(child, ArchiveArray):
            evidence = self._evidence_of(path)
            evidence.is_torn |= is_torn
            self._fitting.add(path, evidence, Placed(child.shape, evidence.slots_of(child)), version)

    def _write(self, file: VersionedFile, one: Found, parents: dict[str, str]) -> None:
        parent = self._parent(file, one, parents)
        shown: dict[str, Shown] = {}
        with file.stage_version(one.name, parent, timestamp=one.time) as version:
            kept = set()
            for path, child in children(self._root, one):
                try:
                    before = self._shown.get(parent, {}).get(path)
                    put = self._put(version, one, path, child, before)
                    if put is not None:
                        shown[path] = put
                    kept.add(path)
                except UsageError:
                    raise
                except READING as error:
                    self._lose(one.name, path, str(error))
            for path in self._fitting.lacking(one.name, {path for path, _ in children(self._root, one)}):
                self._lose(one.name, path, "it was committed with this version, but is not in it any more")
            version.attrs.update(as_in_hdf5(one.group.attrs, VERSION_BOOKKEEPING))
            for path in sorted(_paths(version), reverse=True):
                if path not in kept:
                    del version[path]
        self._shown[one.name] = shown

    def _parent(self, file: VersionedFile, one: Found, parents: dict[str, str]) -> str:
        parent = one.parent
        while parent not in file and parent in parents:
            parent = parents[parent]
        if parent not in file:
            parent = ""
        if parent != one.parent and one.parent != FIRST_VERSION:
            instead = f"{parent!r} replaces it" if parent else "it has no parent now"
            note = f"its parent {one.parent!r} does not exist: {instead}"
            self._repair.notes.append(Loss(one.name, None, note))
        return parent

    def _put(self, version: StagedGroup, one: Found, path: str, child: Child, before: Shown | None) -> Shown | None:
        """Put a group or an array into a version. Returns what an array shows."""
        if isinstance(child, str):
            raise DamagedFile(child)
        if isinstance(child, Group):
            staged = version.require_group(path)
            staged.attrs.clear()
            staged.attrs.update(as_in_hdf5(child.attrs))
            return None
        attributes = as_in_hdf5(child.attrs, ARRAY_BOOKKEEPING)
        shown = self._proved(one, path, child)
        array = self._put_array(version, path, shown, before)
        array.attrs.clear()
        array.attrs.update(attributes)
        if self._fitting.found(one.name, path) is None and self._fitting.disproves(one.name, path):
            self._repair.notes.append(Loss(one.name, path, f"{OTHER}: kept, because you asked for what is not proved"))
        return shown

    def _placed(self, one: Found, path: str, array: ArchiveArray) -> Placed:
        """The chunks that an array of a version shows, or should show according to its fingerprint."""
        evidence = self._evidence_of(path)
        found = self._fitting.found(one.name, path)
        if found is not None:
            return found
        slots = evidence.slots_of(array)
        evidence.check_exist(slots)
        if self._keep_unproved:
            return Placed(array.shape, slots)
        if self._fitting.disproves(one.name, path):
            raise DamagedFile(OTHER)
        if slots.size and (slots != MISSING).any():
            if evidence.is_torn:
                raise DamagedFile("a deletion was interrupted: nothing tells whether its mappings are old or new")
            if evidence.is_proof_missing(slots):
                raise DamagedFile(evidence.table_damage or "some of its chunks have no hash")
        return Placed(array.shape, slots)

    def _proved(self, one: Found, path: str, array: ArchiveArray) -> Shown:
        evidence = self._evidence_of(path)
        placed, own = self._placed(one, path, array), self._fitting.own(one.name, path)
        before = placed.slots if own is None or own.shape != placed.shape else own.slots
        grid = ChunkGrid(placed.shape, evidence.chunk_shape)
        proved: dict[Shape, tuple[int, Shape]] = {}
        for number in np.flatnonzero(placed.slots != MISSING).tolist():
            index = grid.chunk_index(number)
            shape = grid.chunk_box(index).shape
            slot = evidence.proved(int(placed.slots[number]), shape, keep_unproved=self._keep_unproved)
            if slot != before[number]:
                self._mended.add((path, int(before[number])))
            proved[index] = (slot, shape)
        return Shown(placed.shape, proved)

    def _put_array(self, version: StagedGroup, path: str, shown: Shown, before: Shown | None) -> StagedArray:
        """Write the elements of a version's array: only what differs, if its parent has the array."""
        evidence = self._evidence_of(path)
        staged = version[path] if before is not None and path in version else None
        if not isinstance(staged, StagedArray) or before is None:
            before = Shown(shown.shape, {})
            staged = version.create_dataset(
                path,
                shape=shown.shape,
                dtype=evidence.raw.dtype,
                chunks=evidence.chunk_shape,
                **({} if evidence.raw.dtype.hasobject else {"fillvalue": _fill(evidence)}),
                **self._codecs(path, evidence.raw),
            )
        if staged.shape != shown.shape:
            staged.resize(shown.shape)
        for index in before.slots.keys() - shown.slots.keys():
            if all(position * chunk < length for position, chunk, length in _axes(index, evidence, shown)):
                staged[_box(index, evidence, shown)] = "" if evidence.raw.dtype.hasobject else _fill(evidence)
        for index, (slot, shape) in shown.slots.items():
            if before.slots.get(index) != (slot, shape):
                valid = tuple(slice(length) for length in shape)
                staged[_box(index, evidence, shown)] = evidence.chunk(slot)[valid]
        return staged

    def _codecs(self, path: str, raw: ArchiveArray) -> dict[str, Any]:
        """The codecs of an array's chunks, with their levels, as far as HDF5 can encode with them on this machine."""
        filters = filters_of(raw.filename, raw.name)
        able = [(number, values) for number, values in filters if _can_encode(number)]
        if len(able) < len(filters):
            self._left_out[path] = [number for number, _ in filters if not _can_encode(number)]
        return codec_options(able)


def _can_encode(number: int) -> bool:
    return bool(has_codec(number) and h5z.get_filter_info(number) & h5z.FILTER_CONFIG_ENCODE_ENABLED)


def _fill(evidence: Evidence) -> Any:
    return fill_element(evidence.raw.dtype, evidence.raw.fill_value)


def _axes(index: Shape, evidence: Evidence, shown: Shown) -> Iterator[tuple[int, int, int]]:
    return zip(index, evidence.chunk_shape, shown.shape, strict=True)


def _box(index: Shape, evidence: Evidence, shown: Shown) -> tuple[slice, ...]:
    """The part of an array that a chunk covers."""
    axes = _axes(index, evidence, shown)
    return tuple(slice(position * chunk, min((position + 1) * chunk, length)) for position, chunk, length in axes)


def _paths(group: StagedGroup, prefix: str = "") -> Iterator[str]:
    for name in list(group):
        yield f"{prefix}{name}"
        base = group.base[name] if group.base is not None and name in group.base else None
        if isinstance(base, Mapping) or name not in (group.base or ()):
            child = group[name]
            if isinstance(child, StagedGroup):
                yield from _paths(child, f"{prefix}{name}/")
