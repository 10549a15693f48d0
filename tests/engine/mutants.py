"""HDF5 files with one thing in their metadata changed, behind right checksums; what ours and h5py read of them.

`make` writes samples, `mutant` changes one, `compared` reads it with both, each in a process of its own with a limit.
"""

from __future__ import annotations

import pickle
import random
import re
import resource
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import hyperslab as hs
from hyperslab.errors import HyperslabError
from prepared_workers import prepared_context

MOST_SECONDS = 10  # of processor time
LONGEST_WAIT = 120  # on a busy machine
MOST_NBYTES = 4 << 30
MOST_ELEMENTS = 100_000
LONGEST = 700  # bytes of a structure whose end is looked for
SIGNATURES = re.compile(rb"\x89HDF|OHDR|OCHK|BTHD|BTLF|BTIN|FRHP|FSHD|FSSE|FAHD|FADB|EAHD|EAIB|EASB|EADB|SMTB|SMLI")
MASK = 0xFFFFFFFF


def make(folder: Path) -> list[Path]:
    """Small files of all kinds of storage, in the oldest and the newest form."""
    paths = []
    for libver in ("earliest", "latest"):
        for made in (arrays, chunks, many, texts):
            path = folder / f"{made.__name__}_{libver}.h5"
            with h5py.File(path, "w", libver=libver) as file:
                made(file)
            paths.append(path)
    return paths


def arrays(file: h5py.File) -> None:
    file["whole"] = np.arange(12, dtype="i2").reshape(3, 4)
    file["scalar"] = 2.5
    file["compound"] = np.array([(1, 2.5), (3, 4.5)], [("a", "<i4"), ("b", ">f8")])
    file["arrays"] = np.zeros(2, [("a", "u1", (2, 2))])
    file["enum"] = np.array([True, False])
    file["g/soft"] = h5py.SoftLink("/whole")
    file["g/hard"] = file["whole"]
    file.attrs["number"], file["whole"].attrs["list"] = 7, np.arange(3.0)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((4,))
    h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I32LE, space, plist).write(
        h5py.h5s.ALL, space, np.arange(4, dtype="i4")
    )


def chunks(file: h5py.File) -> None:
    data = np.arange(60, dtype="i4").reshape(6, 10)
    file.create_dataset("fixed", data=data, chunks=(2, 4))
    file.create_dataset("packed", data=data, chunks=(4, 4), compression="gzip", shuffle=True, fletcher32=True)
    file.create_dataset("extensible", data=data, chunks=(2, 4), maxshape=(None, 10), fillvalue=3)
    file.create_dataset("tree", data=data, chunks=(2, 4), maxshape=(None, None))
    file.create_dataset("single", data=data, chunks=(6, 10), compression="gzip")
    grown = file.create_dataset("sparse", (20,), "f8", chunks=(3,), fillvalue=1.5)
    grown[4:6] = 9


def many(file: h5py.File) -> None:
    for number in range(12):
        file[f"array {number}"] = np.full(2, number)
        file.attrs[f"attribute {number}"] = number


def texts(file: h5py.File) -> None:
    file.create_dataset("texts", data=["some", "text", "é"], dtype=h5py.string_dtype())
    file.create_dataset("fixed", data=np.array([b"ab", b"cde"], "S4"))
    lists = file.create_dataset("lists", (3,), h5py.vlen_dtype("i4"))
    lists[0], lists[2] = [1, 2], [3]
    file.attrs["text"] = "said"


def lookup3(data: bytes) -> int:
    """The checksum of HDF5's structures."""
    a = b = c = (0xDEADBEEF + len(data)) & MASK
    if not data:
        return c
    words = struct.unpack(f"<{-(-len(data) // 12) * 3}I", data.ljust(-(-len(data) // 12) * 12, b"\0"))

    def turned(value: int, by: int) -> int:
        return (value << by | value >> 32 - by) & MASK

    for place in range(0, len(words), 3):
        a, b, c = (a + words[place]) & MASK, (b + words[place + 1]) & MASK, (c + words[place + 2]) & MASK
        if place + 3 == len(words):
            break
        a = (a - c & MASK) ^ turned(c, 4)
        c = c + b & MASK
        b = (b - a & MASK) ^ turned(a, 6)
        a = a + c & MASK
        c = (c - b & MASK) ^ turned(b, 8)
        b = b + a & MASK
        a = (a - c & MASK) ^ turned(c, 16)
        c = c + b & MASK
        b = (b - a & MASK) ^ turned(a, 19)
        a = a + c & MASK
        c = (c - b & MASK) ^ turned(b, 4)
        b = b + a & MASK
    # The one that is finished, and the one that finishes it, take turns: c by b, a by c, b by a.
    state = [c, a, b]
    for step, by in enumerate((14, 11, 25, 16, 4, 14, 24)):
        done, other = step % 3, (step + 2) % 3
        state[done] = ((state[done] ^ state[other]) - turned(state[other], by)) & MASK
    return state[0]


def spans(data: bytes) -> list[tuple[int, int]]:
    """Where structures with a checksum begin and where it is."""
    found = []
    for match in SIGNATURES.finditer(data):
        start = match.start()
        ends = range(start + 8, min(len(data) - 3, start + LONGEST))
        words = ((end, struct.unpack_from("<I", data, end)[0]) for end in ends)
        end = next((end for end, word in words if word and lookup3(data[start:end]) == word), None)
        found += [(start, end)] if end else []
    return found


def elements(path: Path) -> list[range]:
    """Where the file has elements: changed ones say nothing of what understands the rest."""
    found = []
    with h5py.File(path) as file:
        for array in (each for each in file.values() if isinstance(each, h5py.Dataset)):
            if array.chunks:
                known = (array.id.get_chunk_info(number) for number in range(array.id.get_num_chunks()))
                found += [range(one.byte_offset, one.byte_offset + one.size) for one in known]
            elif array.id.get_offset():
                found.append(range(array.id.get_offset(), array.id.get_offset() + array.nbytes))
    return found


class Sample:
    """A file, and where it can be changed."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        self.spans = spans(self.data)
        hidden = {place for one in elements(path) for place in one}
        edges = {place + by for place, byte in enumerate(self.data) if byte for by in range(-2, 3)}
        self.places = sorted(place for place in edges if 0 <= place < len(self.data) and place not in hidden)
        values = ((place, struct.unpack_from("<Q", self.data, place)[0]) for place in self.places[:-8])
        self.addresses = [place for place, value in values if 48 <= value < len(self.data)]

    def mutant(self, seed: int) -> bytes:
        """The file with one thing changed, and right checksums."""
        chance = random.Random(seed)
        data = bytearray(self.data)
        place = chance.choice(self.places)
        how = chance.randrange(6)
        if how == 5:
            first, second = chance.choice(self.addresses), chance.choice(self.addresses)
            changed = [first, second]
            one, other = data[first : first + 8], data[second : second + 8]
            data[first : first + 8], data[second : second + 8] = other, one
        else:
            changed = [place]
            old = data[place]
            data[place] = (0, 0xFF, old + 1 & 0xFF, old - 1 & 0xFF, old ^ 1 << chance.randrange(8))[how]
        for start, end in self.spans:
            if any(start <= each < end for each in changed):
                data[end : end + 4] = struct.pack("<I", lookup3(bytes(data[start:end])))
        return bytes(data)


def keys(data: bytes, ndim: int) -> Iterator[int]:
    """Where the keys that bound the nodes of B-trees of chunks (version 1) say where chunks start.

    These are the keys of the upper nodes, and the last key of each leaf, which belongs to no chunk.
    """
    nbytes = 8 + 8 * (ndim + 1)
    for match in re.finditer(rb"TREE\x01", data):
        level, count = data[match.start() + 5], int.from_bytes(data[match.start() + 6 : match.start() + 8], "little")
        for number in range(count + 1) if level else [count]:
            yield match.start() + 24 + number * (nbytes + 8) + 8


def with_word(data: bytes, place: int, word: int) -> bytes:
    """The bytes with other eight at a place."""
    return data[:place] + struct.pack("<Q", word % 2**64) + data[place + 8 :]


def plain(value: Any) -> str:
    """A value as text that is the same whoever read it."""
    array = np.asarray(value)
    return f"{array.shape} {listed(array.tolist())!r}"


def listed(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, list | tuple | np.ndarray):
        return [listed(each) for each in value]
    return value


def read(library: str, path: str, names: list[str], result: str) -> None:
    """Read all that the intact file has; in a process of its own."""
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_NBYTES, MOST_NBYTES))
    known = (HyperslabError, KeyError) if library == "ours" else Exception
    found: dict[str, str] = {}
    try:
        root = hs.open(path) if library == "ours" else h5py.File(path)
        for name in names:
            try:
                where, _, attribute = name.partition("@")
                array = root[where]
                if library == "theirs" and not attribute and is_misread(array.dtype):
                    continue
                if attribute or not hasattr(array, "size") or array.size <= MOST_ELEMENTS:
                    found[name] = plain(array.attrs[attribute] if attribute else array[()])
            except known:
                continue
    except known:
        pass
    Path(result).write_bytes(pickle.dumps(found))


def is_misread(dtype: np.dtype[Any]) -> bool:
    """h5py gives sequences of the other byte order as they are, under its own order's dtype."""
    base = h5py.check_vlen_dtype(dtype)
    return isinstance(base, np.dtype) and not base.isnative


def compared(path: Path, names: list[str]) -> tuple[dict[str, str] | str, dict[str, str] | str]:
    """What ours and h5py read of a file by name, or how their process ended."""
    context = prepared_context()
    results = []
    for library in ("ours", "theirs"):
        result = path.with_suffix(f".{library}")
        result.unlink(missing_ok=True)
        process = context.Process(target=read, args=(library, str(path), names, str(result)))
        process.start()
        process.join(LONGEST_WAIT)
        process.kill()
        process.join()
        is_read = process.exitcode == 0 and result.exists()
        results.append(pickle.loads(result.read_bytes()) if is_read else f"ended with {process.exitcode}")
    return results[0], results[1]


def names_of(path: Path) -> list[str]:
    """Arrays, and attributes as `array@attribute`."""
    names = []
    with h5py.File(path) as file:
        names += [f"/@{attribute}" for attribute in file.attrs]

        def visit(name: str, found: h5py.Group | h5py.Dataset) -> None:
            names.extend([f"/{name}"] if isinstance(found, h5py.Dataset) else [])
            names.extend(f"/{name}@{attribute}" for attribute in found.attrs)

        file.visititems(visit)
        names += ["/g/soft"] if "g" in file else []
    return names
