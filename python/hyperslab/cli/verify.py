"""`hyperslab verify` decodes every stored chunk of every array, and reports which are damaged."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.table import Table

from hyperslab.chunk_grid import ceil_div, chunk_counts
from hyperslab.cli.archives import entries, message_of, open_archive, status_of
from hyperslab.cli.arguments import Allowed, Concat, FileArgument, Options
from hyperslab.cli.output import console, line
from hyperslab.cli.progress import live
from hyperslab.errors import DamagedFile, FileChanged, HyperslabError, ReadError, RunError, Unsupported

if TYPE_CHECKING:
    from hyperslab.archive.tree.array import Array
    from hyperslab.archive.tree.group import Group

Box: TypeAlias = tuple[tuple[int, int], ...]  # start and stop of each axis
SLAB_NBYTES = 64 << 20
POINTED_NBYTES = 256  # assumed size of a variable-length element in memory
MOST_PLANNED_CHUNKS = 1 << 20
MOST_MESSAGES = 10
FAILED = ("damaged", "unreadable")


@dataclass
class Verified:
    """The result for one array, the attributes of a group, a broken link, or the file itself."""

    name: str
    status: str = "ok"  # or damaged, unreadable, unsupported, dangling
    messages: list[str] = field(default_factory=list)
    chunk_count: int = 0  # decoded without an error
    damaged_count: int = 0  # chunks, or slabs if the array's parts are chunked differently
    missing_chunk_count: int | None = 0  # None if chunks are not listed; `chunk_count` then includes missing ones
    decoded_nbytes: int = 0

    def fails(self, error: BaseException, status: str, damaged_count: int = 0) -> None:
        """Record an error; it never replaces an earlier status of damaged or unreadable."""
        self.status = self.status if self.status in FAILED else status
        self.damaged_count += damaged_count
        if len(self.messages) < MOST_MESSAGES:
            self.messages.append(message_of(error) if isinstance(error, Exception) else str(error))


def verify(
    file: FileArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    option: Options = None,
    allowed: Allowed = None,
    concat: Concat = None,
) -> None:
    """Decode every chunk and attribute, and check checksums. The exit status is 1 if anything is damaged.

    Example: hyperslab verify ocean.nc
    """
    with open_archive(file, option or [], concat, allowed) as root, live(console(stderr=True), unit="MB") as progress:
        verified_arrays = verified(root, progress)
    if as_json:
        typer.echo(json.dumps({"file": str(file), "arrays": [asdict(one) for one in verified_arrays]}, indent=1))
    else:
        _print(verified_arrays)
    bad = [one for one in verified_arrays if one.status in FAILED]
    if bad:
        damaged = f"{len(bad)} of {len(verified_arrays)} arrays are damaged or unreadable"
        raise RunError(f"{file}: {damaged}; the first is {bad[0].name}")


def verified(root: Group, progress: Callable[[str, int, int], None]) -> list[Verified]:
    """Decode every array of an archive in bounded memory, and return one result for each."""
    arrays, verified_arrays = _arrays(root)
    if root.lost_nbytes:
        from hyperslab.archive.tree.whole import lost

        verified_arrays.insert(0, Verified("(the file)", "damaged", [lost(root)]))
    expected = sum(_nbytes_of(array) for array in arrays)
    before = 0
    for array in arrays:
        one = Verified(array.name)
        verified_arrays.append(one)
        _read_attributes(array, one)
        for done in _decode(array, one):
            progress(array.name, (before + done) // 10**6, max(expected // 10**6, 1))
        before += _nbytes_of(array)
    return verified_arrays


def _arrays(root: Group) -> tuple[list[Array], list[Verified]]:
    """The arrays, each once, and the names that do not lead to an array."""
    from hyperslab.archive.tree.array import Array

    arrays: dict[tuple[str, str], Array] = {}
    problems = _groups(root)
    for entry in entries(root):
        if isinstance(entry.found, Array):
            arrays.setdefault((entry.found.filename, entry.found.name), entry.found)
        elif isinstance(entry.found, Exception):
            problems.append(Verified(entry.path, status_of(entry.found), [message_of(entry.found)]))
    return list(arrays.values()), problems


def _groups(root: Group) -> list[Verified]:
    """The groups with an attribute that cannot be read."""
    from hyperslab.archive.tree.group import Group

    unreadable_groups = []
    inner = (entry.found for entry in entries(root) if isinstance(entry.found, Group) and not entry.is_again)
    for group in (root, *inner):
        one = Verified(group.name)
        _read_attributes(group, one)
        unreadable_groups += [one] if one.messages else []
    return unreadable_groups


def _read_attributes(holder: Array | Group, outcome: Verified) -> None:
    for name in holder.attrs:
        try:
            holder.attrs[name]
        except DamagedFile as error:
            outcome.fails(error, "damaged")
        except Unsupported as error:
            outcome.fails(error, "unsupported")


def _nbytes_of(array: Array) -> int:
    try:
        is_empty = array.unsupported or array.stored_chunk_count == 0
        return 0 if is_empty else array.size * _element_nbytes(array)
    except HyperslabError:
        return 0


def _element_nbytes(array: Array) -> int:
    return POINTED_NBYTES if array.dtype.hasobject else array.dtype.itemsize


def _decode(array: Array, outcome: Verified) -> Iterator[int]:
    """Decode an array and record the result in `outcome`. Yields the number of bytes done after each box."""
    try:
        if array.damaged:
            raise DamagedFile(array.damaged)
        if array.unsupported:
            raise Unsupported(array.unsupported)
        if not array.is_null:
            stored = array.stored_chunk_count
            outcome.missing_chunk_count = None if stored is None else array.chunk_count - stored
            yield from _decode_boxes(array, outcome)
    except FileChanged:
        raise
    except DamagedFile as error:
        outcome.fails(error, "damaged", damaged_count=1)
    except Unsupported as error:
        outcome.fails(error, "unsupported")
    except (ReadError, MemoryError, OSError) as error:
        outcome.fails(error, "unreadable")


def _decode_boxes(array: Array, outcome: Verified) -> Iterator[int]:
    """Halve the array until each box fits in `SLAB_NBYTES`; skip unwritten boxes, and halve damaged ones further."""
    cut = array.chunks or (1,) * array.ndim
    left, done = _expected(array), 0
    waiting: list[Box] = [tuple((0, length) for length in array.shape)] if array.size else []
    while waiting and left > 0:
        box = waiting.pop()
        key = tuple(slice(*bounds) for bounds in box)
        nbytes = math.prod(stop - start for start, stop in box) * _element_nbytes(array)
        halves = _halves(box, cut)
        if nbytes > SLAB_NBYTES and halves:
            waiting += halves if _may_be_written(array, box, cut) else []
            continue
        try:
            _read(array, key)
        except DamagedFile as error:
            if halves and array.chunks:
                waiting += halves  # which chunk is it?
                continue
            outcome.fails(error, "damaged", damaged_count=1)
        else:
            _count(array, key, outcome)
        done += nbytes
        if array.chunks:
            left = _expected(array) - outcome.chunk_count - outcome.damaged_count
        yield done


def _expected(array: Array) -> int:
    """The number of chunks to decode; if chunks are not listed, all chunks of the grid."""
    stored = array.stored_chunk_count
    return array.chunk_count if stored is None else stored


def _count(array: Array, key: tuple[slice, ...], outcome: Verified) -> None:
    """Count the chunks and bytes that reading a box decoded."""
    if array.stored_chunk_count is None:
        lengths = [bounds.stop - bounds.start for bounds in key]
        cut = array.chunks or tuple(lengths)
        outcome.chunk_count += math.prod(chunk_counts(lengths, cut))
        outcome.decoded_nbytes += math.prod(lengths) * array.dtype.itemsize
        return
    plan = array.plan(key)
    outcome.chunk_count += plan.chunk_count - plan.missing_chunk_count
    outcome.decoded_nbytes += plan.decoded_nbytes


def _halves(box: Box, cut: tuple[int, ...]) -> list[Box]:
    """Split a box along its first axis of more than one chunk, first half last; an empty list for a single chunk."""
    for axis, ((start, stop), length) in enumerate(zip(box, cut, strict=True)):
        count = ceil_div(stop - start, length)
        if count > 1:
            middle = start + count // 2 * length
            return [(*box[:axis], bounds, *box[axis + 1 :]) for bounds in ((middle, stop), (start, middle))]
    return []


def _may_be_written(array: Array, box: Box, cut: tuple[int, ...]) -> bool:
    """Whether a box holds a stored chunk; assumed True for a box with too many chunks to check quickly."""
    counts = (ceil_div(stop - start, length) for (start, stop), length in zip(box, cut, strict=True))
    if array.chunks is None or array.stored_chunk_count is None or math.prod(counts) > MOST_PLANNED_CHUNKS:
        return True
    plan = array.plan(tuple(slice(*bounds) for bounds in box))
    return plan.chunk_count > plan.missing_chunk_count


def _read(array: Array, key: Any) -> None:
    """Decode a box and drop the result. Data that h5py had to read count as unverified."""
    array.read(key)
    if array.via != "hyperslab":
        raise Unsupported("it uses a variant of a codec that only h5py can read")


def _print(verified_arrays: list[Verified]) -> None:
    from hyperslab.quantities import nbytes_text

    table = Table("array", "status", "chunks", "decoded", "what is wrong", box=None)
    for one in verified_arrays:
        more = "; …" if one.damaged_count > len(one.messages) else ""
        damaged = f", {one.damaged_count} damaged" if one.damaged_count else ""
        missing = f", {one.missing_chunk_count} never written" if one.missing_chunk_count else ""
        cells = [one.name, one.status, f"{one.chunk_count}{damaged}{missing}", nbytes_text(one.decoded_nbytes)]
        table.add_row(*(line(cell, overflow="fold") for cell in [*cells, "; ".join(one.messages) + more]))
    console().print(table)
