"""Compare the chunk addresses that the HDF5 parser finds with what h5py reads, by values.

    python tests/engine/compare_chunks.py COMMAND [FILE ...]

COMMAND is run with one file and prints `array-path linear-index offset length filter-mask` for every stored chunk
(`crates/hyperslab-parsers/examples/chunks.rs`). Without files, files of every library version, maximum shape, chunk
count and filter are made. The bytes at each address are decoded here and compared with the array's elements, and
chunks that were not found must be all fill value. libhdf5's own chunk queries are not asked: 2.0's are wrong for
some extensible arrays.
"""

from __future__ import annotations

import argparse
import itertools
import shlex
import subprocess
import sys
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

LIBRARY_VERSIONS = ["earliest", "v108", "v110", "v112", "v114", "latest"]
CHUNK_COUNTS = [1, 5, 60, 1000, 5000]
#: Extensible arrays have pages from 131,060 elements on.
LARGE_CHUNK_COUNT = 150_000
FILTERS = {"plain": {}, "filtered": {"compression": 1, "shuffle": True}}
DEFLATE, SHUFFLE, FLETCHER32 = 1, 2, 3


@dataclass(frozen=True)
class Stored:
    """One chunk, as the parser found it."""

    index: int
    offset: int
    length: int
    filter_mask: int


def near_factors(count: int, ndim: int) -> list[int]:
    """A grid of about `count` chunks, longer on its first axes."""
    side = max(1, round(count ** (1 / ndim)))
    rest = [side] * (ndim - 1)
    return [max(1, count // side ** (ndim - 1)), *rest]


def max_shapes(shape: tuple[int, ...]) -> Iterator[tuple[str, tuple[int | None, ...] | None]]:
    """Every combination of fixed, larger and unlimited axes that leads to another index."""
    yield "fixed", None
    yield "larger", tuple(length + 7 for length in shape)
    for axes in itertools.chain.from_iterable(
        itertools.combinations(range(len(shape)), count) for count in range(1, min(2, len(shape)) + 1)
    ):
        name = "unlimited" + "".join(map(str, axes))
        yield name, tuple(None if axis in axes else length + 3 for axis, length in enumerate(shape))


def write_arrays(file: h5py.File, counts: list[int]) -> None:
    """Arrays of all combinations, some of them with chunks that were never written, grown or shrunk."""
    for ndim, count, kind in itertools.product((1, 2, 3), counts, FILTERS):
        chunk_shape = (3, 2, 2)[:ndim]
        grid = near_factors(count, ndim)
        shape = tuple(max(c, n * c - 1) for n, c in zip(grid, chunk_shape, strict=True))
        values = (np.arange(np.prod(shape), dtype="<u4") * 2654435761 + 1).astype("<u4").reshape(shape)
        for name, max_shape in max_shapes(shape):
            path = f"{kind}/{ndim}d/{count}/{name}"
            options = {"chunks": chunk_shape, "fillvalue": 7, **FILTERS[kind]}
            file.create_dataset(path, data=values, maxshape=max_shape, **options)
            if count > 1000:
                continue
            sparse = file.create_dataset(f"{path}-sparse", shape, "<u4", maxshape=max_shape, **options)
            sparse[shape[0] // 2 :] = values[shape[0] // 2 :]
            if max_shape is not None:
                change_shape(file.create_dataset(f"{path}-resized", data=values, maxshape=max_shape, **options))


def change_shape(array: h5py.Dataset) -> None:
    """Shrink, so that chunks are left over, then grow on every axis that can."""
    array.resize(max(1, array.shape[0] - 2), axis=0)
    for axis, most in enumerate(array.maxshape):
        length = array.shape[axis] + 3
        array.resize(length if most is None else min(most, length), axis=axis)
    array[..., -1] = 99


def write_special(file: h5py.File) -> None:
    """Implicit indexes, single chunks, filter masks, and a chunk that its array's edge cuts, stored plain."""
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    create.set_chunk((2, 3))
    create.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    space = h5py.h5s.create_simple((5, 7), (9, 10))
    made = h5py.h5d.create(file.id, b"implicit", h5py.h5t.STD_U32LE, space, create)
    h5py.Dataset(made)[...] = np.arange(35).reshape(5, 7)
    file.create_dataset("single", data=np.arange(35, dtype="<u4").reshape(5, 7), chunks=(5, 7))
    file.create_dataset("single-filtered", data=np.arange(35, dtype="<u4").reshape(5, 7), chunks=(5, 7), compression=1)
    masked = file.create_dataset("masked", (10,), "<u4", chunks=(5,), maxshape=(None,), compression=1, shuffle=True)
    masked.id.write_direct_chunk((0,), np.arange(5, dtype="<u4").tobytes(), filter_mask=3)
    masked.id.write_direct_chunk((5,), zlib.compress(np.arange(5, dtype="<u4").tobytes()), filter_mask=1)


def decode(encoded: bytes, filters: list[tuple[int, int]], mask: int, itemsize: int) -> bytes:
    """The chunk's elements."""
    for number, (filter_id, _) in reversed(list(enumerate(filters))):
        if mask >> number & 1:
            continue
        if filter_id == DEFLATE:
            encoded = zlib.decompress(encoded)
        elif filter_id == SHUFFLE:
            whole = len(encoded) // itemsize * itemsize
            shuffled = np.frombuffer(encoded[:whole], np.uint8).reshape(itemsize, -1)
            encoded = shuffled.T.tobytes() + encoded[whole:]
        elif filter_id == FLETCHER32:
            encoded = encoded[:-4]
    return encoded


def filters_of(array: h5py.Dataset) -> list[tuple[int, int]]:
    """Number and flags of each filter."""
    create = array.id.get_create_plist()
    return [create.get_filter(number)[:2] for number in range(create.get_nfilters())]


def can_be_compared(array: h5py.Dataset) -> bool:
    """Whether elements are plain, and all filters known here."""
    known = {DEFLATE, SHUFFLE, FLETCHER32}
    return not array.dtype.hasobject and all(filter_id in known for filter_id, _ in filters_of(array))


def problems(array: h5py.Dataset, stored: list[Stored], contents: np.ndarray) -> Iterator[str]:
    """What is wrong with the chunks found of an array."""
    values, filters = array[...], filters_of(array)
    grid = [-(-length // chunk) for length, chunk in zip(array.shape, array.chunks, strict=True)]
    missing = np.ones(grid, bool)
    for chunk in stored:
        if not 0 <= chunk.index < missing.size:
            yield f"chunk {chunk.index} is outside the grid {grid}"
            continue
        place = np.unravel_index(chunk.index, grid)
        missing[place] = False
        encoded = contents[chunk.offset : chunk.offset + chunk.length].tobytes()
        decoded = decode(encoded, filters, chunk.filter_mask, array.dtype.itemsize)
        found = np.frombuffer(decoded, array.dtype).reshape(array.chunks)
        where = tuple(slice(p * c, (p + 1) * c) for p, c in zip(place, array.chunks, strict=True))
        expected = values[where]
        valid = found[tuple(slice(length) for length in expected.shape)]
        if valid.tobytes() != expected.tobytes():
            yield f"chunk {chunk.index} holds other elements"
    if len({chunk.index for chunk in stored}) != len(stored):
        yield "a chunk came twice"
    for axis, chunk in enumerate(array.chunks):
        missing = np.repeat(missing, chunk, axis=axis)
    unwritten = values[missing[tuple(slice(length) for length in array.shape)]]
    if unwritten.size and not (unwritten == array.fillvalue).all():
        yield "chunks that were written were not found"


def chunk_tables(command: list[str], path: Path) -> dict[str, list[Stored]]:
    """What the parser finds in a file."""
    done = subprocess.run([*command, str(path)], check=True, stdout=subprocess.PIPE, text=True)
    tables: dict[str, list[Stored]] = defaultdict(list)
    for line in done.stdout.splitlines():
        name, *numbers = line.rsplit(" ", 4)
        tables[name.strip("/")].append(Stored(*map(int, numbers)))
    return tables


def chunked_arrays(file: h5py.File) -> list[str]:
    """The names of the arrays to compare."""
    names: list[str] = []
    is_chunked = h5py.Dataset.chunks.fget
    file.visititems(
        lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) and is_chunked(item) else None
    )
    return [name for name in names if can_be_compared(file[name])]


def compare(command: list[str], path: Path) -> tuple[int, int]:
    """Report on one file: arrays compared, arrays with problems."""
    tables = chunk_tables(command, path)
    contents = np.memmap(path, np.uint8, "r")
    wrong = 0
    with h5py.File(path) as file:
        names = chunked_arrays(file)
        for name in names:
            found = list(itertools.islice(problems(file[name], tables[name], contents), 3))
            wrong += bool(found)
            for problem in found:
                print(f"{path.name} {name}: {problem}")
    return len(names), wrong


def made_files(folder: Path, versions: list[str], counts: list[int]) -> Iterator[Path]:
    """The files of every library version, one with a user block, one with very many chunks."""
    for version in versions:
        path = folder / f"{version}.h5"
        with h5py.File(path, "w", libver=(version, "latest"), userblock_size=512 if version == "v112" else 0) as file:
            write_arrays(file, counts)
            write_special(file)
        yield path
    path = folder / "large.h5"
    with h5py.File(path, "w", libver="latest") as file:
        shape = (LARGE_CHUNK_COUNT // 100, 100)
        values = np.arange(np.prod(shape), dtype="<u4").reshape(shape)
        file.create_dataset("grows", data=values, chunks=(1, 1), maxshape=(shape[0], None))
        sparse = file.create_dataset("sparse", shape, "<u4", chunks=(1, 1), maxshape=(None, shape[1]), fillvalue=7)
        sparse[:3] = values[:3]
        sparse[-20:-9] = values[-20:-9]
        sparse = file.create_dataset("paged", shape, "<u4", chunks=(1, 1), fillvalue=7)
        sparse[::217] = values[::217]
    yield path


def main() -> int:
    """Compare the files named, or made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--versions", nargs="*", default=LIBRARY_VERSIONS)
    parser.add_argument("--counts", nargs="*", type=int, default=CHUNK_COUNTS)
    options = parser.parse_args()
    wrong_count = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in options.files or made_files(Path(folder), options.versions, options.counts):
            try:
                count, wrong = compare(shlex.split(options.command), path)
            except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
                print(f"{path.name}: not compared: {error}")
                continue
            wrong_count += wrong
            print(f"{path.name}: {count} arrays, {wrong} wrong", flush=True)
    return 1 if wrong_count else 0


if __name__ == "__main__":
    sys.exit(main())
