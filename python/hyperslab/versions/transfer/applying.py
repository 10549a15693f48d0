"""`apply_bundle`: adds the versions of a bundle to a file. Every chunk is hashed before it is stored, every array
compared with its mark; branches and tags come last.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np

from hyperslab._core import hash_staged
from hyperslab.archive.far.remote import shown
from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.group import Group
from hyperslab.chunk_grid import chunk_counts
from hyperslab.errors import DamagedFile, HyperslabError, Unsupported, UsageError
from hyperslab.journal.signals import raise_pending_signals
from hyperslab.progress import Progress
from hyperslab.versions.branching.chunk_states import inside
from hyperslab.versions.commit.chunk_store import ChunkStore, ChunkStores, as_bytes
from hyperslab.versions.commit.codec_options import codec_options, filters_in
from hyperslab.versions.commit.commit import store_of
from hyperslab.versions.file import VersionedFile
from hyperslab.versions.inspect.regions import unequal
from hyperslab.versions.layout.elements import as_elements, fill_element, read_chunks, same_value
from hyperslab.versions.layout.fingerprint_log import DAMAGED, record_body, record_positions
from hyperslab.versions.layout.fingerprints import content
from hyperslab.versions.layout.names import DATA, chunk_hash, parsed_time
from hyperslab.versions.layout.padding import has_padding, without_fields
from hyperslab.versions.layout.refs import Target, exists, target_of
from hyperslab.versions.layout.slots import MISSING, Slots, check_chunk_count
from hyperslab.versions.stage.attributes import StagedAttributes
from hyperslab.versions.stage.staged_array import StagedArray
from hyperslab.versions.stage.staged_group import StagedGroup
from hyperslab.versions.transfer.bundling import CHANGED, FORMAT, MARK
from hyperslab.versions.transfer.portable import portable
from hyperslab.versions.transfer.receiving import remove_others
from hyperslab.versions.transfer.ref_moves import Taken, move_refs
from hyperslab.versions.transfer.stored_grid import NOWHERE, StoredGrid

BATCH_NBYTES = 16 << 20


class Bundle:
    """A bundle that is open.

    Parameters
    ----------
    path : str
        Its path or URL.
    options : Mapping[str, Any], optional
        The options of a URL.

    Raises
    ------
    Unsupported
        It is no bundle, or one of a later release.
    DamagedFile
        It is not as it was written.
    """

    def __init__(self, path: str, options: Mapping[str, Any] | None = None) -> None:
        self.path = shown(path)
        self.root: Group = open_archive(path, storage_options=options)
        self._rows: dict[str, dict[bytes, int]] = {}
        try:
            number = self.root.attrs.get(MARK)
            if number is None:
                raise Unsupported(f"{path} is no bundle of versions: `hyperslab versions bundle` writes them")
            if np.ndim(number) or number != FORMAT:
                raise Unsupported(f"{path} is a bundle of format {number}; hyperslab knows {FORMAT}: update hyperslab")
            said = self.root.get("said")
            stored = said[...].tobytes() if isinstance(said, Array) else b""
            try:
                [(at, length)] = record_positions(stored)
                self.said: dict[str, Any] = record_body(stored, at, length)
            except DAMAGED as error:
                raise DamagedFile(f"{path} is a damaged bundle: {error}") from None
        except BaseException:
            self.root.close()
            raise

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.root.close()

    def array(self, path: str) -> Array:
        """An array of the bundle."""
        found = self.root.get(path)
        if not isinstance(found, Array):
            raise DamagedFile(f"{self.path} is a damaged bundle: {path} is missing")
        return found

    def raw(self, path: str) -> Array:
        """The chunks of an array."""
        return self.array(f"stacks/{self.said['stacks'][path]}/raw")

    def rows(self, path: str) -> dict[bytes, int]:
        """The row of each chunk of an array, by its hash."""
        if path not in self._rows:
            number = self.said["stacks"].get(path)
            hashes = () if number is None else np.asarray(self.array(f"stacks/{number}/hashes")[...], np.uint8)
            self._rows[path] = {one.tobytes(): row for row, one in enumerate(hashes)}
        return self._rows[path]


def apply_bundle(file: VersionedFile, bundle: Bundle, progress: Progress | None = None) -> Taken:
    """Add the versions of a bundle that a file lacks, each in one commit, and then its branches and tags in another.

    Raises
    ------
    UsageError
        The file lacks a version that the bundle needs, or has another one of the same name.
    DamagedFile
        A chunk does not have its hash, or an array is not what the bundle says.
    """
    said, taken = bundle.said, Taken(file.path)
    add_versions(file, bundle, taken, progress)
    with as_damage(bundle):
        branches = {name: Target.of(one) for name, one in said["branches"].items()}
        move_refs(file, branches, said["tags"], said["checked_out"], taken)
    return taken


def add_versions(
    file: VersionedFile,
    bundle: Bundle,
    taken: Taken,
    progress: Progress | None = None,
    only: Set[Target] | None = None,
    others: Iterable[Bundle] = (),
) -> None:
    """Add the versions of a bundle that a file lacks, each in one commit.

    Parameters
    ----------
    file, bundle
        The file and the bundle.
    taken
        Gets what was added.
    progress
        Called for each version.
    only
        The versions to add; all by default.
    others
        Bundles that may have chunks which neither the file nor this one has, looked at one after the other.

    Raises
    ------
    UsageError, DamagedFile
        As for `apply_bundle`.
    """
    with as_damage(bundle):
        _Applying(file, bundle, taken, progress, others).run(only)


@contextmanager
def as_damage(bundle: Bundle) -> Iterator[None]:
    """What a bundle says that makes no sense is damage."""
    try:
        yield
    except HyperslabError:
        raise
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        raise DamagedFile(f"{bundle.path} is a damaged bundle: {type(error).__name__} {error}") from error


class _Applying:
    def __init__(
        self, file: VersionedFile, bundle: Bundle, taken: Taken, progress: Progress | None, others: Iterable[Bundle]
    ) -> None:
        self._file, self._bundle, self._taken, self._progress = file, bundle, taken, progress
        self._others = others
        self._said: Mapping[str, Any] = bundle.said

    def run(self, only: Set[Target] | None) -> None:
        file, chosen = self._file, list(enumerate(self._said["versions"]))
        if only is None:
            needs = list(map(Target.of, self._said["needs"]))
        else:
            chosen = [(number, said) for number, said in chosen if Target.of(said["target"]) in only]
            own = {Target.of(said["target"]) for _, said in chosen}
            parents = [said[kind] for _, said in chosen for kind in ("parent", "merged") if said[kind] is not None]
            needs = [target for target in map(Target.of, parents) if target not in own]
        for target in needs:
            if not exists(target, file.table):
                raise UsageError(
                    f"{file.path} lacks version {target[0]!r} of {target[1]}, which {self._bundle.path} builds on"
                )
        for _, said in chosen:
            target = Target.of(said["target"])
            if target.version in file and not exists(target, file.table):
                mine = target_of(target.version, file.table).timestamp
                raise UsageError(f"{file.path} has another version {target.version!r}, of {mine}: rename one of them")
        for done, (number, said) in enumerate(chosen):
            target = Target.of(said["target"])
            if self._progress is not None:
                self._progress(target.version, done, len(chosen))
            if not exists(target, file.table):
                self._version(number, target, said)
                self._taken.versions.append(target.version)

    def _version(self, number: int, target: Target, said: Mapping[str, Any]) -> None:
        parent = "" if said["parent"] is None else Target.of(said["parent"]).version
        merged = None if said["merged"] is None else Target.of(said["merged"])
        group = self._bundle.root[f"versions/{number}"]
        time = parsed_time(target.timestamp)
        with self._file.receive_version(target.version, parent, time, merged, make_current=False) as (staged, stores):
            _put_attributes(staged.attrs, group)
            for path in said["groups"]:
                if path in staged and isinstance(staged[path], StagedArray):
                    del staged[path]
                _put_attributes(staged.require_group(path).attrs, self._bundle.root[f"versions/{number}/{path}"])
            for path, array in said["arrays"].items():
                raise_pending_signals()
                self._array(staged, stores, path, array, self._bundle.array(f"versions/{number}/{path}"))
            remove_others(staged, frozenset((*said["groups"], *said["arrays"])))

    def _array(self, staged: StagedGroup, stores: ChunkStores, path: str, said: Mapping[str, Any], rows: Array) -> None:
        target = staged.get(path)
        if isinstance(target, StagedGroup):
            del staged[path]
        shape = tuple(map(int, said["shape"]))
        if rows.dtype != CHANGED or rows.ndim != 1:
            raise DamagedFile(f"{self._bundle.path} is a damaged bundle: {rows.name} does not list chunks")
        changed = np.asarray(rows[...])
        if not isinstance(target, StagedArray) or target.whole is not None:
            if not said["is_whole"]:
                raise DamagedFile(
                    f"{path} is not in the version before, to which {self._bundle.path} lists the changes"
                )
            target = self._new(staged, stores, path, shape)
        store = store_of(target, stores)
        self._check_alike(path, store, self._bundle)
        count = check_count(path, shape, store)
        numbers = changed["number"].astype(np.int64)
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < count):
            raise DamagedFile(f"{self._bundle.path} is a damaged bundle: {path} has chunks beyond its shape")
        is_same = not said["is_whole"] and target.shape == shape
        slots = target.staged.stored.reshape(-1).copy() if is_same else np.full(count, MISSING, np.int64)
        if not said["is_whole"] and not is_same:
            raise DamagedFile(f"{path} has another shape in the version before than {self._bundle.path} says")
        slots[numbers] = self._slots(path, store, shape, numbers, changed["hash"])
        if content(shape, slots, store.keys).hex() != said["content"] and count:
            what = (
                f"{path} is not what {self._bundle.path} says: the version before is not the one that it was made from"
            )
            raise DamagedFile(f"{what}; bundle the versions again, from an earlier one")
        if not is_same or len(numbers):
            if target.shape != shape:
                target.resize(shape)
            target.adopt(np.arange(count), slots)
        _put_attributes(target.attrs, rows)

    def _new(self, staged: StagedGroup, stores: ChunkStores, path: str, shape: tuple[int, ...]) -> StagedArray:
        if f"{DATA}/{path}/raw_data" in stores.file:
            return staged.put_array(path, shape, stores.of_path(path).dtype)
        raw = self._bundle.raw(path)
        fill = {} if raw.dtype.hasobject else {"fillvalue": fill_element(raw.dtype, raw.fill_value)}
        options = {**fill, **codec_options(raw.filters)}
        return staged.put_array(path, shape, raw.dtype, chunks=raw.chunks, **options)

    def _slots(self, path: str, store: ChunkStore, shape: tuple[int, ...], numbers: Slots, hashes: Any) -> Slots:
        """The slots of chunks, by their hashes; those that the file lacks are taken from the bundle."""
        is_stored = hashes.any(axis=1)
        slots = np.full(len(numbers), MISSING, np.int64)
        chosen = np.flatnonzero(is_stored)
        nbytes = math.prod(store.chunk_shape) * max(1, store.dtype.itemsize)
        step = max(1, BATCH_NBYTES // max(1, nbytes))
        for first in range(0, len(chosen), step):
            raise_pending_signals()
            some = chosen[first : first + step]
            digests = np.ascontiguousarray(hashes[some])
            slots[some], new = store.find(digests.tobytes())
            if len(new):
                self._store(path, store, shape, numbers[some][new], digests[new])
        return slots

    def _store(self, path: str, store: ChunkStore, shape: tuple[int, ...], numbers: Slots, digests: Any) -> None:
        """Store chunks from this bundle, or from another one that has them."""
        for source in chain((self._bundle,), self._others):
            known = source.rows(path)
            rows = np.array([known.get(one.tobytes(), NOWHERE) for one in digests], np.int64)
            has = rows != NOWHERE
            if has.any():
                self._check_alike(path, store, source)
                self._store_from(source, path, store, shape, numbers[has], digests[has], rows[has])
                numbers, digests = numbers[~has], digests[~has]
            if not len(numbers):
                return
        raise DamagedFile(f"{self._bundle.path} lacks chunks of {path} that this file does not have either")

    def _store_from(
        self,
        source: Bundle,
        path: str,
        store: ChunkStore,
        shape: tuple[int, ...],
        numbers: Slots,
        digests: Any,
        rows: Slots,
    ) -> None:
        raw = source.raw(path)
        wanted, inverse = np.unique(rows, return_inverse=True)
        chunks = as_elements(_by_row(read_chunks(raw, store.chunk_shape, wanted), inverse), store.dtype)
        _check_hashes(chunks, shape, store, numbers, digests, f"{path} in {source.path}")
        inner = math.prod(chunk_counts(shape, store.chunk_shape)[1:])
        lengths = np.minimum(store.chunk_shape[0], shape[0] - numbers // inner * store.chunk_shape[0])
        grid = None if _clear_outside(chunks, shape, store, numbers) else StoredGrid.of(raw)
        if grid is not None and grid.fits(raw.filters, filters_in(store.raw)):
            store.append_stored(digests.tobytes(), grid.read(rows), lengths)
        else:
            store.append(digests.tobytes(), chunks, lengths)
        self._taken.chunk_count += len(numbers)

    def _check_alike(self, path: str, store: ChunkStore, source: Bundle) -> None:
        """Refuse an array that is stored in another way here."""
        raw = source.raw(path) if path in source.said["stacks"] else None
        if raw is not None and (raw.dtype != store.dtype or raw.chunks != store.chunk_shape):
            said = f"{path} has chunks of {raw.chunks} and elements of {raw.dtype} in {source.path}"
            here = f"{store.chunk_shape} and {store.dtype} here"
            raise UsageError(f"{said}, and {here}: change one of them with modify_metadata")


def check_count(path: str, shape: tuple[int, ...], store: ChunkStore) -> int:
    """The number of chunks of an array's grid, if that is no number of a damaged bundle."""
    if len(shape) != len(store.chunk_shape) or min(shape) < 0:
        raise DamagedFile(f"{path} has the shape {shape}, and chunks of {store.chunk_shape}")
    check_chunk_count(path, shape, store.chunk_shape)
    return math.prod(chunk_counts(shape, store.chunk_shape))


def _by_row(chunks: Any, rows: Slots) -> Any:
    """Chunks by their rows, with the bytes that mean nothing as they are."""
    return without_fields(chunks)[rows].view(chunks.dtype)


def _clear_outside(chunks: Any, shape: tuple[int, ...], store: ChunkStore, numbers: Slots) -> bool:
    """Put the fill value where chunks reach beyond their array. Returns whether anything else was there."""
    grid = chunk_counts(shape, store.chunk_shape)
    outside = ~inside(shape, np.stack(np.unravel_index(numbers, grid), axis=1), store.chunk_shape)
    if not outside.any():
        return False
    before = chunks.copy()
    chunks[outside] = "" if chunks.dtype.hasobject else store.fill[()]
    return bool(unequal(before, chunks).any())


def _check_hashes(
    chunks: Any, shape: tuple[int, ...], store: ChunkStore, numbers: Slots, digests: Any, where: str
) -> None:
    """Refuse chunks that do not have their hashes."""
    rows = np.arange(len(numbers))
    if chunks.dtype.hasobject:
        grid = chunk_counts(shape, store.chunk_shape)
        index = np.stack(np.unravel_index(numbers, grid), axis=1) * store.chunk_shape
        valid = np.minimum(np.array(shape) - index, store.chunk_shape).tolist()
        found = b"".join(chunk_hash(chunks[row][tuple(map(slice, one))]) for row, one in enumerate(valid))
    else:
        found = hash_staged(as_bytes(chunks), rows, numbers, (shape, store.chunk_shape), chunks.dtype.itemsize)
    wrong = np.flatnonzero((np.frombuffer(found, np.uint8).reshape(-1, 32) != digests).any(axis=1))
    if len(wrong) and not has_padding(chunks.dtype):  # others hash bytes that mean nothing as they copied them
        raise DamagedFile(f"chunk {numbers[wrong[0]]} of {where} does not have its hash: the bundle is damaged")


def _put_attributes(staged: StagedAttributes, source: Group | Array) -> None:
    wanted = portable(source.attrs)
    for name, value in wanted.items():
        if name not in staged or not same_value(staged[name], value):
            staged[name] = value
    for name in [name for name in staged if name not in wanted]:
        del staged[name]
