"""HDF5 files whose metadata contradict themselves: refused by name where libhdf5 refuses, never other values."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import mutants
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import HyperslabError, Unsupported

KEY = struct.Struct("<II3Q")  # length, filter mask, and a chunk's place of two axes and within the element


def texts(file: h5py.File) -> None:
    file.create_dataset("x", data=["some text", "other"], dtype=h5py.string_dtype())


def shorter_pointer(data: bytearray) -> None:
    """The first element says 8 of the 9 bytes that its heap object has."""
    heap = data.find(b"GCOL")
    place = data.find(struct.pack("<IQI", 9, heap, 2))
    assert place > 0
    data[place] = 8


def longer_pointer(data: bytearray) -> None:
    place = data.find(struct.pack("<IQI", 9, data.find(b"GCOL"), 2))
    assert place > 0
    data[place] = 10


def chunked(file: h5py.File) -> None:
    file.create_dataset("x", data=np.arange(64, dtype="i4").reshape(8, 8), chunks=(4, 4))


def growing(file: h5py.File) -> None:
    data = np.arange(64, dtype="i4").reshape(8, 8)
    file.create_dataset("x", data=data, chunks=(4, 4), maxshape=(None, None))


def key_twice(data: bytearray) -> None:
    """The second chunk's key is the first one's."""
    first = data.find(KEY.pack(64, 0, 0, 0, 0))
    second = data.find(KEY.pack(64, 0, 0, 4, 0))
    assert first > 0
    assert second > 0
    data[second : second + KEY.size] = data[first : first + KEY.size]


def keys_swapped(data: bytearray) -> None:
    first = data.find(KEY.pack(64, 0, 0, 4, 0))
    second = data.find(KEY.pack(64, 0, 4, 0, 0))
    assert 0 < first < second
    data[first : first + KEY.size], data[second : second + KEY.size] = (
        data[second : second + KEY.size],
        data[first : first + KEY.size],
    )


def compound(file: h5py.File) -> None:
    file.create_dataset("x", data=np.zeros(2, dtype=[("a", "i4"), ("b", "i4")]))


def no_fields(data: bytearray) -> None:
    place = data.find(b"\x16\x02\x00\x00\x08\x00\x00\x00")
    assert place > 0
    data[place + 1] = 0


def overlapping_fields(data: bytearray) -> None:
    place = data.find(b"b\0\0\0\0\0\0\0\x04\0\0\0")
    assert place > 0
    data[place + 8] = 2


def numbers(file: h5py.File) -> None:
    file.create_dataset("x", data=np.arange(4, dtype="i4"), track_times=True)


def message_flags(kind: int, flags: int) -> Callable[[bytearray], None]:
    """The time of change of the array, a message that nobody needs, becomes another one."""

    def patched(data: bytearray) -> None:
        head = struct.pack("<HHB3x", 0x12, 8, 0)
        place = data.find(head)
        assert place > 0
        data[place : place + len(head)] = struct.pack("<HHB3x", kind, 8, flags)

    return patched


def nowhere(data: bytearray) -> None:
    place = data.find(struct.pack("<IQI", 9, data.find(b"GCOL"), 2))
    assert place > 0
    data[place + 4 : place + 12] = b"\xff" * 8


def larger_than_its_limit(data: bytearray) -> None:
    place = data.find(struct.pack("<BBB5xQQ", 1, 1, 1, 4, 4))
    assert place > 0
    data[place + 8] = 5


def key_beyond_the_shape(data: bytearray) -> None:
    """A chunk before others says that it is beyond the shape: who looks for the others by halves misses some."""
    place = data.find(KEY.pack(64, 0, 0, 4, 0))
    assert place > 0
    struct.pack_into("<Q", data, place + 8, 4000)


CONTRADICTIONS: dict[str, tuple[Callable[[h5py.File], None], Callable[[bytearray], None], str]] = {
    "a shorter pointer": (texts, shorter_pointer, "object 2 has 9 bytes, an element that it holds has 8"),
    "a longer pointer": (texts, longer_pointer, "object 2 has 9 bytes, an element that it holds has 10"),
    "a pointer to nowhere": (texts, nowhere, "length 9 without an address"),
    "a shape beyond its limit": (numbers, larger_than_its_limit, "axis 0 has length 5, but its maximum is 4"),
    "a key twice": (chunked, key_twice, "out of order|two chunks"),
    "a key beyond the shape": (growing, key_beyond_the_shape, "out of order"),
    "keys in another order": (chunked, keys_swapped, "out of order"),
    "a compound without fields": (compound, no_fields, "without fields"),
    "fields that overlap": (compound, overlapping_fields, "overlap"),
    "an unknown message that must be known": (numbers, message_flags(0x09, 0x80), "header message of type 0x9"),
    "a message of the future that must be known": (numbers, message_flags(0x19, 0x80), "header message of type 0x19"),
    "flags that contradict each other": (numbers, message_flags(0x12, 0x06), "contradict each other"),
}


def refused_or(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (OSError, KeyError, RuntimeError, ValueError, TypeError) as error:
        return error


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_what_contradicts_itself_is_refused(tmp_path: Path, case: str) -> None:
    make, damage, message = CONTRADICTIONS[case]
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="earliest") as file:
        make(file)
        intact = file["x"][()]
    data = bytearray(path.read_bytes())
    damage(data)
    path.write_bytes(data)
    with h5py.File(path) as file:
        theirs = refused_or(lambda: file["x"][()])
    # libhdf5 refuses, or reads fill values for what it does not find: nobody should take either for the file's.
    assert isinstance(theirs, Exception) or not np.array_equal(theirs, intact)
    with hs.open(path) as root, pytest.raises(HyperslabError, match=message):
        root["x"][...]


@pytest.mark.parametrize("flags", [0x00, 0x08, 0x10])
def test_messages_that_need_not_be_known_are_passed_over(tmp_path: Path, flags: int) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="earliest") as file:
        numbers(file)
    data = bytearray(path.read_bytes())
    message_flags(0x09, flags)(data)
    path.write_bytes(data)
    with h5py.File(path) as theirs, hs.open(path) as ours:
        assert theirs["x"][()].tolist() == ours["x"][...].tolist() == [0, 1, 2, 3]


def test_two_attributes_of_one_name_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.attrs["first"], file.attrs["secon"], file.attrs["other"] = 1, 2, 3
    path.write_bytes(path.read_bytes().replace(b"secon\0", b"first\0"))
    with hs.open(path) as root:
        assert root.attrs["other"] == 3
        with pytest.raises(HyperslabError, match="two attributes"):
            root.attrs["first"]


def test_two_links_of_one_name_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="earliest") as file:
        file["aaaa"], file["bbbb"] = 1, 2
    path.write_bytes(path.read_bytes().replace(b"bbbb\0", b"aaaa\0"))
    with hs.open(path) as root, pytest.raises(HyperslabError, match="two links"):
        root["aaaa"]


def test_elements_that_numpy_cannot_have_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.array([b"ab", b"cd"], dtype="S2"))
    data = bytearray(path.read_bytes())
    place = data.find(b"\x13\x01\x00\x00\x02\x00\x00\x00")
    place = place if place > 0 else data.find(b"\x13\x00\x00\x00\x02\x00\x00\x00")
    assert place > 0
    data[place + 4 : place + 8] = struct.pack("<I", 0xFFFFFFF0)
    path.write_bytes(data)
    with hs.open(path) as root:
        for ask in (lambda: root["x"].dtype, lambda: root["x"].nbytes, lambda: root["x"][0]):
            with pytest.raises(HyperslabError, match="array /x of "):
                ask()
        with pytest.raises(Unsupported, match="NumPy cannot represent"):
            _ = root["x"].dtype
        assert "x" in repr(root)


def test_a_chunk_that_says_4_gib_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="earliest") as file:
        file.create_dataset("x", data=np.arange(64, dtype="i4").reshape(8, 8), chunks=(8, 8), fletcher32=True)
    data = bytearray(path.read_bytes())
    place = data.find(KEY.pack(260, 0, 0, 0, 0))
    assert place > 0
    data[place : place + 4] = struct.pack("<I", 0xFFFFFFF0)
    path.write_bytes(data)
    with hs.open(path) as root, pytest.raises(HyperslabError, match=r"array /x of .*4294967280 bytes reach past"):
        root["x"][0, 0]


def test_a_chunk_that_no_memory_holds_is_named(tmp_path: Path) -> None:
    """Decoding would need more than there are addresses for: our error, not Python's `MemoryError`."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="earliest") as file:
        file.create_dataset("x", (1 << 46,), "u1", chunks=(1 << 31,), compression="gzip", fillvalue=1)
        file["x"].id.write_direct_chunk((0,), b"\x78\x9c\x03\x00\x00\x00\x00\x01")
    with hs.open(path) as root:
        with pytest.raises(HyperslabError, match="array /x of "):
            root["x"][0]
        assert root["x"][1 << 45] == 1
        with pytest.raises(MemoryError, match=r"needs 70368744177664 bytes of memory.*read a part"):
            root["x"][...]


@pytest.mark.parametrize("kind", [0, 2])
def test_axes_of_what_has_none_are_damage(tmp_path: Path, kind: int) -> None:
    """A scalar's or null dataspace with axes: libhdf5 refuses both."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        numbers(file)
    data = bytearray(path.read_bytes())
    place = data.find(struct.pack("<4BQ", 2, 1, 1, 1, 4))
    assert place > 0
    start, end = next((start, end) for start, end in mutants.spans(bytes(data)) if start <= place < end)
    data[place + 3] = kind
    data[end : end + 4] = struct.pack("<I", mutants.lookup3(bytes(data[start:end])))
    path.write_bytes(data)
    with h5py.File(path) as file:
        assert isinstance(refused_or(lambda: file["x"][()]), Exception)
    with hs.open(path) as root, pytest.raises(HyperslabError, match=f"1 axes of a dataspace of type {kind}"):
        root["x"][...]
