"""The blocks of a chunk index in an HDF5 file."""

import hashlib
import re

# Nodes of either B-tree, and headers.
HEADS = re.compile(b"TREE\x01|BTHD|BTIN|BTLF|FAHD|EAHD")
NOWHERE = 2**64 - 1
# In a growing table: elements in the data blocks that the index block points to. Groups of blocks follow.
FIRST_LENGTHS = (16, 32, 32, 32, 64, 64)
FIRST_GROUP, LAST_GROUP = 4, 28


def index_blocks(content, chunks, ndim):
    """The address of each block, as text, with a digest of its bytes. Pages of a table are blocks too, once written.

    `chunks` are linear indices, offsets and lengths. Bytes inside a chunk are never a block, even if they look like
    one.
    """
    inside = [(offset, offset + length) for _, offset, length in chunks]
    shown = {}
    for match in HEADS.finditer(content):
        place = match.start()
        if any(start <= place < stop for start, stop in inside):
            continue
        kind = match[0][:4]
        tree_nbytes = 24 + 65 * (8 + 8 * (ndim + 1)) + 64 * 8
        nbytes = {b"TREE": tree_nbytes, b"BTHD": 38, b"FAHD": 28, b"EAHD": 72}.get(kind, 2048)
        below = {b"FAHD": fixed_table, b"EAHD": growing_table}.get(kind)
        for start, length in [(place, nbytes), *(below(content, place) if below else ())]:
            shown[str(start)] = hashlib.sha256(content[start : start + length]).hexdigest()
    return shown


def number(content, place):
    return int.from_bytes(content[place : place + 8], "little")


def fixed_table(content, header):
    width, page = content[header + 6], 1 << content[header + 7]
    count, block = number(content, header + 8), number(content, header + 16)
    if block == NOWHERE:
        return
    if count <= page:
        yield block, 14 + count * width + 4
        return
    lengths = [min(page, count - first) for first in range(0, count, page)]
    bitmap = content[block + 14 : block + 14 + -(-len(lengths) // 8)]
    yield block, 14 + len(bitmap) + 4
    start = block + 14 + len(bitmap) + 4
    for k, length in enumerate(lengths):
        if bitmap[k // 8] & (0x80 >> k % 8):
            yield start, length * width + 4
        start += length * width + 4


def growing_table(content, header):
    width, first = content[header + 6], number(content, header + 60)
    if first == NOWHERE:
        return
    yield first, 14 + 4 * width + 8 * (len(FIRST_LENGTHS) + LAST_GROUP - FIRST_GROUP + 1) + 4
    place = first + 14 + 4 * width
    blocks = [(place + 8 * k, length) for k, length in enumerate(FIRST_LENGTHS)]
    place += 8 * len(FIRST_LENGTHS)
    for group in range(FIRST_GROUP, LAST_GROUP + 1):
        found = number(content, place + 8 * (group - FIRST_GROUP))
        if found != NOWHERE:
            count = 1 << group // 2
            yield found, 18 + 8 * count + 4
            blocks += [(found + 18 + 8 * k, 16 << (group + 1) // 2) for k in range(count)]
    for pointer, length in blocks:
        if number(content, pointer) != NOWHERE:
            yield number(content, pointer), 18 + length * width + 4
