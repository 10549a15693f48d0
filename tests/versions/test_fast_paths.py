"""What is done in one piece gives the same result as chunk by chunk."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import versioned_hdf5

import hyperslab as hs
from hyperslab import libhdf5
from hyperslab._core import ChunkTable, gather_chunks, hash_chunks, hash_staged, mappings_block
from hyperslab.versions.commit import chunk_store, virtual
from hyperslab.versions.commit.chunk_store import ChunkStore, make_store
from hyperslab.versions.layout.names import chunk_hash

SHAPES = [
    ((1000,), (16,)),
    ((37, 23), (5, 4)),
    ((9, 8, 7), (2, 3, 7)),
    ((0, 3), (2, 2)),
    ((5,), (10,)),
    ((600_000,), (9,)),
]


@pytest.mark.parametrize(("shape", "chunk_shape"), SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["<f8", ">i2", "S3", "i4,f2"])
def test_hashes(shape: tuple[int, ...], chunk_shape: tuple[int, ...], dtype: str) -> None:
    data = np.frombuffer(np.random.default_rng(0).bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype)
    array = data.reshape(shape)
    grid = tuple(-(-length // chunk) for length, chunk in zip(shape, chunk_shape, strict=True))
    numbers = np.arange(int(np.prod(grid)))
    together = hash_chunks(data.view(np.uint8).copy(), (shape, chunk_shape), numbers, array.itemsize)
    for number, index in enumerate(list(np.ndindex(grid))[:100]):
        box = tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, chunk_shape, strict=True))
        assert together[32 * number : 32 * number + 32] == chunk_hash(array[box])
    assert len(together) == 32 * int(np.prod(grid))


@pytest.mark.parametrize("step", [1, 7, 64, 1000])
def test_hashes_are_taken_in_order(step: int) -> None:
    array, taken = np.arange(100_000.0), []
    arguments = (array.view(np.uint8), ((100_000,), (1000,)), np.arange(100), 8)
    digests = hash_chunks(*arguments, (step, lambda first, some: taken.append((first, some))))
    assert [first for first, _ in taken] == list(range(0, 100, step))
    assert b"".join(some for _, some in taken) == digests == hash_chunks(*arguments)


def test_who_takes_hashes_can_stop() -> None:
    taken = []

    def take(first: int, digests: bytes) -> None:
        taken.append(first)
        if first == 20:
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        hash_chunks(np.zeros(800_000, np.uint8), ((100_000,), (1000,)), np.arange(100), 8, (10, take))
    assert taken == [0, 10, 20]


def test_data_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="do not have the given shape"):
        hash_chunks(np.zeros(7, np.uint8), ((2,), (1,)), np.arange(2), 4)


@pytest.mark.parametrize(("shape", "chunk_shape"), SHAPES[:5], ids=str)
def test_mappings_by_libhdf5_and_through_h5py(
    tmp_path: Path, shape: tuple[int, ...], chunk_shape: tuple[int, ...]
) -> None:
    library = libhdf5.loaded()
    assert library is not None
    count = int(np.prod([-(-length // chunk) for length, chunk in zip(shape, chunk_shape, strict=True)]))
    slots = np.random.default_rng(1).integers(-1, 5, count)
    with h5py.File(tmp_path / "v.h5", "w") as file:
        raw = file.create_dataset("raw", (5 * chunk_shape[0], *chunk_shape[1:]), "f8", chunks=chunk_shape)
        found = []
        for way in ("libhdf5", "h5py"):
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_layout(h5py.h5d.VIRTUAL)
            target, source = h5py.h5s.create_simple(shape), h5py.h5s.create_simple(raw.shape)
            if way == "h5py":
                virtual.add_mappings_through_h5py(plist, target, source, shape, raw, slots)
            else:
                library.add_mappings((plist.id, target.id, source.id), "/raw", shape, chunk_shape, slots)
            found.append([mapping(plist, number) for number in range(plist.get_virtual_count())])
        assert found[0] == found[1]
        assert len(found[0]) == np.count_nonzero(slots != -1)


def mapping(plist: Any, number: int) -> tuple[Any, ...]:
    target, source = plist.get_virtual_vspace(number), plist.get_virtual_srcspace(number)
    names = plist.get_virtual_filename(number), plist.get_virtual_dsetname(number)
    return (*names, target.get_regular_hyperslab(), source.get_regular_hyperslab())


def test_identifiers_that_libhdf5_does_not_know_are_an_error() -> None:
    library = libhdf5.loaded()
    assert library is not None
    with pytest.raises(ValueError, match="the identifier 0 is not a property list to create arrays of this libhdf5"):
        library.add_mappings((0, 0, 0), "/raw", (4,), (2,), np.array([0, 1]))


def test_mappings_may_lead_to_what_a_stack_will_have(tmp_path: Path) -> None:
    """Versions that are written anew get their arrays before the stack has its chunks."""
    library = libhdf5.loaded()
    assert library is not None
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.VIRTUAL)
    target, source = h5py.h5s.create_simple((4,)), h5py.h5s.create_simple((0,), (h5py.h5s.UNLIMITED,))
    library.add_mappings((plist.id, target.id, source.id), "/raw", (4,), (2,), np.array([0, 7]))
    with h5py.File(tmp_path / "v.h5", "w") as file:
        made = h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_INT64, h5py.h5s.create_simple((4,)), plist)
        file.create_dataset("raw", data=np.arange(16), chunks=(2,))
        assert h5py.Dataset(made)[...].tolist() == [0, 1, 14, 15]


def test_a_whole_version_without_libhdf5_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libhdf5, "loaded", lambda: None)
    data = np.random.default_rng(2).random((50, 20))
    with hs.VersionedFile(tmp_path / "v.h5", "w") as file:
        with file.stage_version("a") as version:
            version.create_dataset("x", data=data, chunks=(7, 3))
        np.testing.assert_array_equal(file["a"]["x"][...], data)


@pytest.mark.parametrize(("shape", "chunk_shape"), SHAPES[:3], ids=str)
def test_mappings_in_one_piece_are_what_libhdf5_writes(
    tmp_path: Path, shape: tuple[int, ...], chunk_shape: tuple[int, ...]
) -> None:
    count = int(np.prod([-(-length // chunk) for length, chunk in zip(shape, chunk_shape, strict=True)]))
    slots = np.random.default_rng(1).integers(-1, 5, count)
    block = mappings_block("/raw", shape, chunk_shape, slots)
    assert block is not None
    with h5py.File(tmp_path / "v.h5", "w") as file:
        raw = file.create_dataset("raw", (5 * chunk_shape[0], *chunk_shape[1:]), "f8", chunks=chunk_shape)
        virtual.create_virtual(file, "x", shape, slots, raw, 0)
    assert block.tobytes() in (tmp_path / "v.h5").read_bytes()


@pytest.mark.parametrize("libver", ["earliest", "v110", "latest"])
def test_who_opens_the_file_finds_all_mappings(tmp_path: Path, libver: str) -> None:
    path, data = tmp_path / "v.h5", np.random.default_rng(3).random((90, 40))
    with h5py.File(path, "w", libver=libver):
        pass
    with hs.VersionedFile(path, "a") as file:
        for number in range(4):
            with file.stage_version(str(number)) as version:
                for name in ("x", "g/y", "z"):
                    if number == 0:
                        version.create_dataset(name, data=data, chunks=(3, 4))
                        version[name].attrs["long"] = "a" * 3000  # the object header continues elsewhere
                    version[name][number, 5] = number
                    version[name].attrs[f"more {number}"] = number
            inside = file._file["_version_data/versions"][str(number)]["x"]
            data[number, 5] = number
            np.testing.assert_array_equal(inside[...], data)  # libhdf5 has forgotten what it wrote
            assert len(list(inside.virtual_sources())) == 30 * 10
    with h5py.File(path) as plain, hs.VersionedFile(path) as ours:
        for name in ("x", "g/y", "z"):
            np.testing.assert_array_equal(plain["_version_data/versions/3"][name][...], data)
            np.testing.assert_array_equal(ours["3"][name][...], data)


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "gzip", "shuffle": True},
        {"compression": "lzf", "shuffle": True, "fletcher32": True},
        {"compression": "lzf"},
        {"compression": "gzip", "compression_opts": 9, "fletcher32": True},
        {"scaleoffset": 3},
    ],
    ids=str,
)
def test_chunks_that_we_encode_are_decoded_by_libhdf5(tmp_path: Path, options: dict[str, Any]) -> None:
    smooth = np.round(np.sin(np.arange(7000) / 50), 3).reshape(70, 100)
    noise = np.random.default_rng(4).integers(0, 1 << 62, (70, 100)).view("f8")
    both = [smooth] if "scaleoffset" in options else [smooth, noise, np.zeros((70, 100))]
    for data in both:
        path = tmp_path / "v.h5"
        with hs.VersionedFile(path, "w") as file:
            with file.stage_version("a") as version:
                version.create_dataset("x", data=data, chunks=(8, 30), **options)
            with file.stage_version("b") as version:
                version["x"][3:60:2, 4] = 1.0
        with h5py.File(path) as plain:
            raw = plain["_version_data/x/raw_data"]
            infos = [raw.id.get_chunk_info(number) for number in range(raw.id.get_num_chunks())]
            is_lzf = options.get("compression") == "lzf"  # a mask that libhdf5 itself never sets for LZF makes it fail
            assert is_lzf or not any(info.filter_mask for info in infos)
            assert plain["_version_data/versions/b/x"][3, 4] == 1
            atol = 1e-3 if "scaleoffset" in options else 0
            np.testing.assert_allclose(plain["_version_data/versions/a/x"][...], data, rtol=0, atol=atol)


@pytest.mark.parametrize(("shape", "chunk_shape"), SHAPES[1:5], ids=str)
def test_gathered_and_staged_chunks(shape: tuple[int, ...], chunk_shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(5).integers(0, 1 << 30, shape)
    grid = tuple(-(-length // chunk) for length, chunk in zip(shape, chunk_shape, strict=True))
    indices = list(np.ndindex(grid))[::2]
    numbers = np.arange(int(np.prod(grid)))[::2].copy()
    flat = data.reshape(-1).view(np.uint8)
    gathered = gather_chunks(flat, (shape, chunk_shape), numbers, np.array(-7).tobytes())
    chunks = gathered.view(data.dtype).reshape(-1, *chunk_shape)
    slots = np.arange(len(numbers))
    digests = hash_staged(gathered, slots, numbers, (shape, chunk_shape), 8)
    for slot, index in enumerate(indices):
        part = data[tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, chunk_shape, strict=True))]
        expected = np.full(chunk_shape, -7)
        expected[tuple(map(slice, part.shape))] = part
        np.testing.assert_array_equal(chunks[slot], expected)
        assert digests[32 * slot : 32 * slot + 32] == chunk_hash(part)


def test_table_of_chunks() -> None:
    one, two, nothing = (bytes([number]) * 32 for number in range(3))
    table = ChunkTable(one, np.array([5]))
    slots, new = table.find(two + one + nothing + two + bytes(31) + b"x", nothing, 9)
    assert (slots.tolist(), new.tolist()) == ([9, 5, -1, 9, 10], [0, 4])
    table.add(two, 9)
    assert table.find(two, nothing, 10)[0].tolist() == [9]
    assert len(table) == 2
    with pytest.raises(ValueError, match="32 bytes"):
        table.find(b"short", nothing, 0)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"compression": "gzip", "shuffle": True}, {"compression": "lzf"}], ids=str)
def test_chunks_that_we_encode_are_overwritten_in_part_by_libhdf5(tmp_path: Path, options: dict[str, Any]) -> None:
    """versioned-hdf5 does so when it deletes versions. Short chunks, so that stored lengths often stay the same."""
    rng = np.random.default_rng(6)
    for _ in range(5):
        made = {str(number): rng.integers(0, 3, (13, 10)).astype(bool) for number in range(3)}
        with hs.VersionedFile(tmp_path / "v.h5", "w") as file:
            for name, data in made.items():
                with file.stage_version(name) as version:
                    if name == "0":
                        version.create_dataset("x", data=data, chunks=(5, 2), fillvalue=True, **options)
                    version["x"][...] = data
        with h5py.File(tmp_path / "v.h5", "r+") as plain:
            versioned_hdf5.delete_versions(plain, ["1"])
        with hs.VersionedFile(tmp_path / "v.h5") as file:
            for name in ("0", "2"):
                np.testing.assert_array_equal(file[name]["x"][...], made[name])


@pytest.mark.parametrize("chunk_length", [512, 4096])  # ours, and versioned-hdf5's
@pytest.mark.parametrize("reopened", [False, True])
def test_rows_of_hash_tables_that_we_encode_are_decoded_by_libhdf5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reopened: bool, chunk_length: int
) -> None:
    """Batch by batch, across the chunks of the table; hashes may contain runs, which LZF shortens."""
    monkeypatch.setattr(chunk_store, "HASH_TABLE_CHUNK_LENGTH", chunk_length)
    rng, hashes = np.random.default_rng(7), b""
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file.create_group("_version_data")
        make_store(file, "x", "i4", (2,), 0, {})
        store = ChunkStore(file, "x")
        for count in (1, 2, 5, 4085, 1, 1, 1, 1, 97, 1, 5000, 1):
            new = rng.bytes(32 * count - 16) + bytes(16)
            hashes += new
            for some in filter(None, (new[: 32 * (count // 2)], new[32 * (count // 2) :])):
                store.append(some, np.zeros((len(some) // 32, 2), "i4"), np.full(len(some) // 32, 2))
            store.settle()
            with h5py.File(tmp_path / "w.h5", "w") as copied:  # libhdf5 reads it from the file
                file.copy("_version_data/x/hash_table", copied)
                table = copied["hash_table"]
                assert table["hash"].tobytes() == hashes
                assert table.attrs["largest_index"] == len(table)
                assert (table["shape"][:, 0] == np.arange(len(table)) * 2).all()
            if reopened:
                store = ChunkStore(file, "x")
        assert store._table.chunks == (chunk_length,)
        assert [info.filter_mask for info in map(store._table.id.get_chunk_info, range(3))] == [0, 0, 0]


@pytest.mark.parametrize("is_borrowed", [False, True])
@pytest.mark.parametrize("count", [100, 300])
def test_chunks_that_lzf_does_not_shorten_are_read_where_they_were_written(
    tmp_path: Path, is_borrowed: bool, count: int
) -> None:
    """libhdf5 forgets that the last chunk written was not encoded."""
    noise = np.random.default_rng(3).random(count)
    with ExitStack() as stack:
        if is_borrowed:
            file = hs.VersionedFile(stack.enter_context(h5py.File(tmp_path / "v.h5", "w")))
        else:
            file = stack.enter_context(hs.VersionedFile(tmp_path / "v.h5", "w"))
        with file.stage_version("a") as version:
            version.create_dataset("x", data=noise, chunks=(100,), compression="lzf")
        with file.stage_version("b") as version:
            version["x"][-1] = 5
            np.testing.assert_array_equal(version["x"][:-1], noise[:-1])
        np.testing.assert_array_equal(file["a"]["x"][...], noise)
    with h5py.File(tmp_path / "v.h5") as read:
        np.testing.assert_array_equal(read["_version_data/versions/b/x"][:-1], noise[:-1])
        assert read["_version_data/x/raw_data"].shape == (count + 100,)
