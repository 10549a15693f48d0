"""In which order a commit overwrites what was committed, for those who read or write the file and do not know of its
journal: h5py, versioned-hdf5, another hard link.

After each step they find all that was there before, and the new version only when all that it needs is in place:

1. the write guard, if the file has one; the end of the file, so that nobody else's objects are put where ours are; and
   that heaps of names have no free space, for what says where that is changes in two places at once;
2. what nothing of before leads to, and what only gets more: chunks, heaps, trees of chunks from their roots down;
3. how many chunks are known by their hashes: others show them from then on, and put no others in their places (where
   the guard keeps others from writing, this is part of 2); and nodes of trees that have less chunks than before, as
   part of them went to others;
4. nodes of groups with more names than before: links, those of versions last;
5. nodes of groups with less;
6. which version is current, and the free space of heaps;
7. the write guard lets others write again; together with 6 where that changes one sector only, which no power cut
   tears.

Between two of these all is on the disk before the next begins.
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
NODE_NBYTES = 24 + 16 * 32  # of a tree of names, as libhdf5 makes them by default
NODE_CHUNKS = 64  # in a node of a tree of chunks, as libhdf5 makes them if nobody asks otherwise
MOST_BARRIERS = 8  # where chunks lie in each other's places; then they are only written one after the other
COUNT = b"largest_index\0"  # an attribute: in an object header
MOST_HEADER_NBYTES = 1 << 12
COUNTING = (2, 0)  # where that is written, if no guard keeps others from writing
Reader = Callable[[int, int], bytes]
Part = tuple[tuple[int, ...], int, bytes]  # its order among others, offset, bytes


class Overwritten(NamedTuple):
    """Bytes that were committed, and what they are to be: one object of libhdf5, or several that lie together."""

    offset: int
    old: bytes
    new: bytes

    def is_still(self, signature: bytes) -> bool:
        """Whether it was such an object before, and stays one."""
        return self.old.startswith(signature) and self.new.startswith(signature)

    @property
    def sectors(self) -> set[int]:
        """The numbers of those in which a byte changes."""
        is_other = np.frombuffer(self.old, np.uint8) != np.frombuffer(self.new, np.uint8)
        found: list[int] = np.unique((np.flatnonzero(is_other) + self.offset) // SECTOR_NBYTES).tolist()
        return set(found)


class Shown(NamedTuple):
    """Where the group is by which versions are found: its object header, and its nodes."""

    header: list[tuple[int, int]]
    nodes: set[int]


def steps_of(
    overwritten: list[Overwritten], read: Reader, versions: int | None, guard: Guard | None = None
) -> list[Step]:
    """The order; None stands between what has to be on the disk before the rest is written.

    Parameters
    ----------
    overwritten : list[Overwritten]
        What a commit overwrites.
    read : Reader
        Gives so many bytes from an offset on, as they will be.
    versions : int | None
        Where the object header of the group of versions is, if there is one.
    guard : Guard | None
        What keeps others from writing meanwhile; it is set by the first step, if not from the start.
    """
    is_ordered = is_plain(read(0, 16))
    shown = _shown(read, versions) if is_ordered and versions is not None else Shown([], set())
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
    if guard is not None:  # what a power cut may tear is on the disk before others may write
        steps += [*([None] if len(last) > 1 or not phases[5] else []), (guard.offset, bytes([NIL]))]
    return steps


def _layers(parts: list[Part], overwritten: list[Overwritten]) -> list[list[Part]]:
    """Parts of the second step, each in a layer behind that of what it has to wait for.

    libhdf5 writes chunks where others were that a commit gave up: a tree first has to lose what was there, then the
    chunk is written, then its own tree gets it. The first layer is of chunks that lie where nothing was.
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
    """How many others have to be there one after the other before each; where two wait for each other, one does not."""
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
    """From where to where the chunks lie that a node of a tree names, or the names of a heap."""
    if data.startswith(b"HEAP"):
        nbytes, _, address = struct.unpack_from("<QQQ", data, 8)
        return {(address, address + nbytes)}
    key_nbytes, rest = divmod(len(data) - 24 - 8 * NODE_CHUNKS, NODE_CHUNKS + 1)
    if not data.startswith(b"TREE") or data[4] != 1 or data[5] or rest or key_nbytes < 16:
        return set()
    entry = np.dtype([("nbytes", "<u4"), ("rest", f"V{key_nbytes - 4}"), ("address", "<u8")])
    entries = np.frombuffer(data, entry, min(_count(data), NODE_CHUNKS), 24)
    starts = entries["address"].tolist()
    return {(start, start + nbytes) for start, nbytes in zip(starts, entries["nbytes"].tolist(), strict=True)}


def _overlapping(parts: list[Part], starts: list[tuple[int, int]], extents: set[tuple[int, int]]) -> set[int]:
    """The numbers of the parts that overlap these extents."""
    found = set()
    for start, stop in extents:
        at = max(bisect(starts, (start, len(parts))) - 1, 0)
        for offset, number in starts[at : bisect(starts, (stop, -1))]:
            if offset < stop and start < offset + len(parts[number][2]):
                found.add(number)
    return found


def _guarded_rank(
    one: Overwritten, shown: Shown, is_ordered: bool, versions: int | None, guard: Guard | None
) -> tuple[int, ...]:
    """The phase of an object, and its order there, where a guard may keep others from writing."""
    if guard is not None and one.offset == guard.root:  # which leads to a new guard
        return 0, 1
    rank = _rank(one, shown, is_ordered, versions)
    return (1, 4) if guard is not None and rank == COUNTING else rank


def _rank(one: Overwritten, shown: Shown, is_ordered: bool, versions: int | None) -> tuple[int, ...]:
    """The phase of an object, and its order there."""
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
        if one.new[5] > one.old[5]:  # a root whose chunks or names went to new nodes
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


def _shown(read: Reader, header: int) -> Shown:
    """Where the group is that has this object header, of the first version."""
    version, nbytes = struct.unpack("<B7xI4x", read(header, 16))
    if version != 1:
        return Shown([(header, header + 16)], set())
    blocks, shown = [(header + 16, nbytes)], Shown([(header, header + 16)], set())
    for start, length in blocks:  # which grows
        shown.header.append((start, start + length))
        messages, at = read(start, length), 0
        while at + 8 <= length:
            kind, count = struct.unpack_from("<HH", messages, at)
            at += 8
            if kind == CONTINUATION and len(blocks) < 64:
                blocks.append(struct.unpack_from("<QQ", messages, at))
            elif kind == SYMBOL_TABLE:
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
        children = struct.unpack_from(f"<{2 * count}Q", node, 24)[1::2]  # keys lie between
        if node[5]:
            waiting += children
        else:
            nodes.update(children)
