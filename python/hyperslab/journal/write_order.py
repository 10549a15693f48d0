"""The order in which a commit overwrites committed bytes, so that programs that ignore the journal can read the file.

Such programs are h5py, versioned-hdf5, or any program that opens another hard link. After each step they find
everything that was there before, and they find the new version only when everything that it needs is written:

1. Set the write guard, if the file has one. Write the new end of the file, so that no other program puts objects where
   ours are. Mark heaps of names as having no free space, because the position of that is stored in two locations.
2. Write what nothing refers to yet, and what only grows: chunks, heaps, and trees of chunks from their roots down.
3. Write how many chunks are known by their hashes. From then on other programs show these chunks and do not overwrite
   them. (If the guard keeps others from writing, this is part of step 2.) Also write nodes of trees that have fewer
   chunks than before, because some moved to other nodes.
4. Write nodes of groups that have more names than before; the links of versions come last.
5. Write nodes of groups that have fewer names.
6. Write which version is current, and the free space of heaps.
7. Clear the write guard. If step 6 changes only one sector, which a power cut cannot tear, do both together.

Each step is synced to disk before the next begins.
"""

from __future__ import annotations

import struct
from bisect import bisect
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hyperslab.journal.journal import SECTOR_NBYTES, Step
from hyperslab.journal.write_guard import NIL, SUPERBLOCK, UNKNOWN, Guard, is_plain

CONTINUATION, SYMBOL_TABLE = 0x10, 0x11  # messages of an object header
NO_FREE_SPACE = struct.pack("<Q", 1)
FREE_SPACE_AT = 16  # in a local heap
NEWER = (b"OCHK", b"BTHD", b"BTLF", b"BTIN", b"FRHP", b"FHDB", b"FHIB")  # groups of later layouts
MOST_NODES = 1 << 16
MOST_WHOLE_NBYTES = 1 << 12  # of an object that is written whole, even if little of it changes
MOST_GAP_SECTORS = 4  # between two parts that are written as one
NODE_NBYTES = 24 + 16 * 32  # of a tree of names, the default of libhdf5
PREFIX_NBYTES, HEAP_NBYTES = 8, 32  # the fields that every object has; the header of a local heap
NODE_CHUNKS = 64  # chunks in a node of a tree, the default of libhdf5
MOST_BARRIERS = 8  # between chunks that reuse each other's space; beyond this they are written in order, without a sync
COUNT = b"largest_index\0"  # an attribute in an object header
MOST_HEADER_NBYTES = 1 << 12
COUNTING = (2, 0)  # the rank of that attribute, if no guard keeps others from writing
Reader = Callable[[int, int], bytes]
Part = tuple[tuple[int, ...], int, bytes]  # rank within its phase, offset, bytes


class Overwritten(NamedTuple):
    """Committed bytes and their replacement: one object of libhdf5, or several that are adjacent."""

    offset: int
    old: bytes
    new: bytes

    def is_still(self, signature: bytes) -> bool:
        """Whether both old and new bytes are an object with this signature.

        Where the file ended in the middle of an object, only its first bytes overwrite old ones: they are none.
        """
        is_cut = len(self.new) < PREFIX_NBYTES
        return not is_cut and self.old.startswith(signature) and self.new.startswith(signature)

    @property
    def is_of_names(self) -> bool:
        """Whether it is a node of the tree of a group."""
        return self.is_still(b"SNOD") or (self.is_still(b"TREE") and self.new[4] == 0)

    @property
    def sectors(self) -> set[int]:
        """The numbers of the sectors in which a byte changes."""
        is_other = np.frombuffer(self.old, np.uint8) != np.frombuffer(self.new, np.uint8)
        numbers: list[int] = np.unique((np.flatnonzero(is_other) + self.offset) // SECTOR_NBYTES).tolist()
        return set(numbers)


def narrowed(overwritten: list[Overwritten], steps: list[Step]) -> tuple[list[Overwritten], list[Step]]:
    """The same commit without the sectors of long objects that do not change.

    libhdf5 writes the names of all versions again with each new one, which would be three writes of them.
    """
    parts: dict[tuple[int, int], list[tuple[int, int]]] = {}
    kept = []
    for one in overwritten:
        if len(one.new) <= MOST_WHOLE_NBYTES:
            kept.append(one)
            continue
        parts[one.offset, len(one.new)] = changed = _changed(one)
        kept += [Overwritten(one.offset + first, one.old[first:last], one.new[first:last]) for first, last in changed]
    made: list[Step] = []
    for step in steps:
        if step is None:
            made.append(None)
            continue
        offset, data = step
        changed = parts.get((offset, len(data)), [(0, len(data))])
        made += [(offset + first, data[first:last]) for first, last in changed]
    return kept, made


def _changed(one: Overwritten) -> list[tuple[int, int]]:
    """The parts of an object in which sectors change, by their bounds; parts that are close to each other are one."""
    numbers = np.array(sorted(one.sectors), np.int64)
    ends = np.flatnonzero(np.diff(numbers) > MOST_GAP_SECTORS)
    firsts, lasts = numbers[np.append(0, ends + 1)], numbers[np.append(ends, len(numbers) - 1)]
    starts = np.maximum(firsts * SECTOR_NBYTES - one.offset, 0).tolist()
    stops = np.minimum((lasts + 1) * SECTOR_NBYTES - one.offset, len(one.new)).tolist()
    return list(zip(starts, stops, strict=True))


class Shown(NamedTuple):
    """Where the group of versions is: the extents of its object header, and the offsets of its nodes."""

    header: list[tuple[int, int]]
    nodes: set[int]


def steps_of(
    overwritten: list[Overwritten], read: Reader, versions: int | None, guard: Guard | None = None
) -> list[Step]:
    """Put the writes of a commit in order.

    Parameters
    ----------
    overwritten : list[Overwritten]
        What the commit overwrites.
    read : Reader
        Reads a number of bytes at an offset, as they will be after the commit.
    versions : int | None
        The offset of the object header of the group of versions, if there is one.
    guard : Guard | None
        The write guard. The first step sets it, unless it is set already.

    Returns
    -------
    list[Step]
        The writes in order; None is a barrier, where everything before must be synced to disk.
    """
    is_ordered = is_plain(read(0, 16))
    shown = _shown(read, versions, overwritten) if is_ordered and versions is not None else Shown([], set())
    phases: list[list[Part]] = [[] for _ in range(6)]
    last: set[int] = set()  # the sectors that change at the end
    if guard is not None and not guard.is_set:
        phases[0].append(((2,), guard.offset, bytes([UNKNOWN])))
    for one in overwritten:
        if is_ordered and one.is_still(b"HEAP") and len(one.new) >= FREE_SPACE_AT + 8:
            before, after = (data[FREE_SPACE_AT : FREE_SPACE_AT + 8] for data in (one.old, one.new))
            if before != NO_FREE_SPACE:
                phases[0].append(((1,), one.offset + FREE_SPACE_AT, NO_FREE_SPACE))
            new = one.new[:FREE_SPACE_AT] + NO_FREE_SPACE + one.new[FREE_SPACE_AT + 8 :]
            phases[1].append(((2,), one.offset, new))
            if after != NO_FREE_SPACE:
                phases[5].append(((1,), one.offset + FREE_SPACE_AT, after))
            continue
        phase, *order = _guarded_rank(one, shown, is_ordered, versions, guard)
        phases[phase].append((tuple(order), one.offset, one.new))
        if guard is not None and phase == 5:
            last |= one.sectors
    free, *behind = _layers(phases[1], overwritten if is_ordered else [])
    steps: list[Step] = []
    for number, layer in enumerate([phases[0] + free, *behind, *phases[2:]]):
        is_late = MOST_BARRIERS < number < len(behind)
        if layer and steps and not is_late:
            steps.append(None)
        steps += [(offset, new) for _, offset, new in sorted(layer)]
    if guard is not None:  # sync what a power cut could tear before others may write
        steps += [*([None] if len(last) > 1 or not phases[5] else []), (guard.offset, bytes([NIL]))]
    return steps


def _layers(parts: list[Part], overwritten: list[Overwritten]) -> list[list[Part]]:
    """Split the parts of the second step into layers, each after the layers that it depends on.

    libhdf5 reuses the space of chunks that a commit gave up. Then the old tree must drop the old chunk first, the new
    chunk is written next, and its tree refers to it last. The first layer has the chunks in unused space.
    """
    starts = sorted((offset, number) for number, (_, offset, _) in enumerate(parts))
    waits: list[set[int]] = [set() for _ in parts]
    is_chunk: set[int] = set()
    if not parts:
        return [[]]
    numbers = {offset: number for number, (_, offset, _) in enumerate(parts)}
    for one in overwritten:
        tree = numbers.get(one.offset)
        if tree is None:
            continue
        old, new = _extents(one.old), _extents(one.new)
        for number in _overlapping(parts, starts, new - old):
            is_chunk.add(number)
            waits[tree].add(number)
        for number in _overlapping(parts, starts, old - new) - waits[tree]:
            waits[number].add(tree)
    depths = _depths(waits)
    made: list[list[Part]] = [[] for _ in range(max(depths, default=0) + 2)]
    for number, part in enumerate(parts):
        made[0 if number in is_chunk and not waits[number] else depths[number] + 1].append(part)
    return made


def _depths(waits: list[set[int]]) -> list[int]:
    """The length of the longest chain of dependencies of each part; circular dependencies are broken."""
    depths, left = [0] * len(waits), [len(others) for others in waits]
    waited_by: list[list[int]] = [[] for _ in waits]
    for number, others in enumerate(waits):
        for other in others:
            waited_by[other].append(number)
    ready, done = [number for number, count in enumerate(left) if not count], set[int]()
    for first in range(len(waits)):
        if not ready and first not in done:
            ready = [first]
        while ready:
            number = ready.pop()
            done.add(number)
            for other in waited_by[number]:
                if other not in done:
                    depths[other] = max(depths[other], depths[number] + 1)
                    left[other] -= 1
                    if not left[other]:
                        ready.append(other)
    return depths


def _extents(data: bytes) -> set[tuple[int, int]]:
    """The extents of the chunks of a tree node, or of the names of a heap."""
    if data.startswith(b"HEAP") and len(data) >= HEAP_NBYTES:
        nbytes, _, address = struct.unpack_from("<QQQ", data, 8)
        return {(address, address + nbytes)}
    key_nbytes, rest = divmod(len(data) - 24 - 8 * NODE_CHUNKS, NODE_CHUNKS + 1)
    if rest or key_nbytes < 16 or not data.startswith(b"TREE") or data[4] != 1 or data[5]:
        return set()
    entry = np.dtype([("nbytes", "<u4"), ("rest", f"V{key_nbytes - 4}"), ("address", "<u8")])
    entries = np.frombuffer(data, entry, min(_count(data), NODE_CHUNKS), 24)
    starts = entries["address"].tolist()
    return {(start, start + nbytes) for start, nbytes in zip(starts, entries["nbytes"].tolist(), strict=True)}


def _overlapping(parts: list[Part], starts: list[tuple[int, int]], extents: set[tuple[int, int]]) -> set[int]:
    """The numbers of the parts that overlap these extents."""
    overlapping = set()
    for start, stop in extents:
        at = max(bisect(starts, (start, len(parts))) - 1, 0)
        for offset, number in starts[at : bisect(starts, (stop, -1))]:
            if offset < stop and start < offset + len(parts[number][2]):
                overlapping.add(number)
    return overlapping


def _guarded_rank(
    one: Overwritten, shown: Shown, is_ordered: bool, versions: int | None, guard: Guard | None
) -> tuple[int, ...]:
    """The phase of an object and its rank in it, with a guard that may keep others from writing."""
    if guard is not None and one.offset == guard.root:  # it refers to the new guard
        return 0, 1
    rank = _rank(one, shown, is_ordered, versions)
    return (1, 4) if guard is not None and rank == COUNTING else rank


def _rank(one: Overwritten, shown: Shown, is_ordered: bool, versions: int | None) -> tuple[int, ...]:
    """The phase of an object and its rank in it."""
    if one.new.startswith(SUPERBLOCK):
        return 0, 0
    if not is_ordered:
        if one.offset == versions:
            return 5, 0
        return (3, 0) if one.new[:4] in NEWER else (1, 0)
    stop = one.offset + len(one.new)
    if any(one.offset < last and first < stop for first, last in shown.header):
        return 5, 0
    is_shown = one.offset in shown.nodes
    if one.is_still(b"SNOD"):
        return (4, 9) if _count(one.new) < _count(one.old) else (3, is_shown, 9)
    if one.is_still(b"TREE"):
        from_root, is_group, change = 255 - one.new[5], one.new[4] == 0, _count(one.new) - _count(one.old)
        if one.new[5] > one.old[5]:  # a root whose chunks or names moved to new nodes
            change = 1
        if is_group and change:
            return (3, is_shown, 0, from_root) if change > 0 else (4, 0, from_root)
        return (2, 1, from_root) if is_group or change < 0 else (1, 3, from_root)
    if COUNT in one.new and len(one.new) <= MOST_HEADER_NBYTES:
        return COUNTING
    return (1, 1) if one.new.startswith(b"GCOL") else (1, 0)


def _count(node: bytes) -> int:
    count: int = struct.unpack_from("<H", node, 6)[0]
    return count


def _shown(read: Reader, header: int, overwritten: list[Overwritten]) -> Shown:
    """Where a group is, from its object header of version 1.

    Its nodes are many. They are read only if several nodes of groups are overwritten: one alone needs no order.
    """
    with_nodes = sum(one.is_of_names for one in overwritten) > 1
    version, nbytes = struct.unpack("<B7xI4x", read(header, 16))
    if version != 1:
        return Shown([(header, header + 16)], set())
    blocks, shown = [(header + 16, nbytes)], Shown([(header, header + 16)], set())
    for start, length in blocks:  # grows during the loop
        shown.header.append((start, start + length))
        messages, at = read(start, length), 0
        while at + 8 <= length:
            kind, count = struct.unpack_from("<HH", messages, at)
            at += 8
            if kind == CONTINUATION and len(blocks) < 64:
                blocks.append(struct.unpack_from("<QQ", messages, at))
            elif kind == SYMBOL_TABLE and with_nodes:
                _add_nodes(read, struct.unpack_from("<Q", messages, at)[0], shown.nodes)
            at += count
    return shown


def _add_nodes(read: Reader, root: int, nodes: set[int]) -> None:
    waiting = [root]
    while waiting and len(nodes) < MOST_NODES:
        address = waiting.pop()
        nodes.add(address)
        node = read(address, NODE_NBYTES)
        if node[:4] != b"TREE" or node[4]:
            continue
        count = _count(node)
        if 24 + 16 * count > len(node):
            node = read(address, 24 + 16 * count)
        children = struct.unpack_from(f"<{2 * count}Q", node, 24)[1::2]  # every other one is a key
        if node[5]:
            waiting += children
        else:
            nodes.update(children)
