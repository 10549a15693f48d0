"""hyperslab reads DMR++ documents for files of h5py, with h5py and VirtualiZarr as the judges."""

from __future__ import annotations

import base64
import re
import zlib
from pathlib import Path
from typing import Any

import dmrpp_writer as writer
import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import DamagedFile, HyperslabError, ReadError, Unsupported

TYPES = ("i1", "u1", "<i2", ">u2", "<i4", ">i4", "<u8", ">i8", "<f4", ">f4", "<f8", ">f8")


def low_level(file: h5py.File, name: str, dtype: Any, chunk: tuple[int, ...], steps: list[str]) -> h5py.Dataset:
    """A chunked array of 23 x 31 with filters in a given order."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(chunk)
    for step in steps:
        {
            "shuffle": plist.set_shuffle, "deflate": lambda: plist.set_deflate(4), "fletcher32": plist.set_fletcher32
        }[step]()  # fmt: skip
    space = h5py.h5s.create_simple((23, 31))
    h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(np.dtype(dtype)), space, plist)
    return file[name]


def make(path: Path) -> None:
    """What documents can express: types, orders of filters, layouts, fills, masks, groups, dimensions, text."""
    data = np.cumsum(np.arange(23 * 31).reshape(23, 31) % 5, axis=1) % 100
    with h5py.File(path, "w") as file:
        file.attrs["title"] = 'A < B & "C" — ä'
        file.attrs["numbers"] = np.array([1.5, np.nan, -np.inf])
        file.attrs["words"] = ["one", "", "three"]
        inner = file.create_group("group/deeper")
        inner.attrs["big"] = np.int64(-(2**63))
        for dtype in TYPES:
            inner.create_dataset(
                f"chunked_{dtype}", data=data.astype(dtype), dtype=dtype, chunks=(10, 7), compression=1
            )
            inner.create_dataset(f"whole_{dtype}", data=data.astype(dtype), dtype=dtype)
        chains = (["shuffle", "deflate", "fletcher32"], ["deflate", "shuffle"], ["fletcher32", "shuffle", "deflate"])
        for number, steps in enumerate((*chains, ["deflate", "deflate"], ["fletcher32"], ["shuffle"])):
            low_level(file, f"chain_{number}", "<f8", (6, 9), steps)[...] = data
        masked = low_level(file, "masked", "<i4", (23, 16), ["shuffle", "deflate"])
        masked[...] = data
        masked.id.write_direct_chunk((0, 0), data[:, :16].astype("<i4").tobytes(), filter_mask=3)
        sparse = file.create_dataset("sparse", (40, 50), "f4", chunks=(7, 9), fillvalue=-1.234567e30)
        sparse[10:20, 20:30] = 7
        sparse.attrs["_FillValue"] = np.float32(-1.234567e30)
        netcdf = file.create_dataset("netcdf_fill", (10, 10), "f8", chunks=(4, 4), fillvalue=9.969209968386869e36)
        netcdf[:2] = 1
        file.create_dataset("never", (5, 6), ">i2", fillvalue=-99)
        file.create_dataset("never_chunked", (50,), "f4", chunks=(10,), fillvalue=np.nan)
        file.create_dataset("none", (0, 4), "i4", chunks=(1, 4), maxshape=(None, 4))
        file["scalar"] = 4.5
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I32BE, h5py.h5s.create_simple((3, 4)), plist)
        file["compact"][...] = np.arange(12).reshape(3, 4)
        file.create_dataset("enumerated", data=[1, 0, 2], dtype=h5py.enum_dtype({"a": 0, "b": 1, "c": 2}, "u1"))
        pairs = np.zeros(40, np.dtype({"names": ["a", "b"], "formats": ["<i4", ("<f8", (2,))], "offsets": [0, 8]}))
        pairs["a"], pairs["b"] = np.arange(40), np.arange(80).reshape(40, 2)
        file.create_dataset("pairs", data=pairs, chunks=(16,), compression="gzip", shuffle=True)
        file["fixed"] = np.array([[b"one", b"three"], [b"", b"12345"]], "S5")
        file["words"] = np.array(["a", "bé <&>", ""], object)
        file["time"] = np.arange(23)
        file["time"].make_scale("time")
        file["along"] = data.astype("i2")
        file["along"].dims[0].attach_scale(file["time"])


def names_of(path: Path) -> list[str]:
    with h5py.File(path) as file:
        names: list[str] = []
        file.visititems(lambda name, node: names.append(name) if isinstance(node, h5py.Dataset) else None)
        return names


def compare(found: hs.Group, path: Path, names: list[str]) -> None:
    with h5py.File(path) as file:
        for name in names:
            array, expected = found[name], file[name]
            values = expected.asstr()[()] if expected.dtype.kind == "O" else expected[()]
            assert array.shape == expected.shape, name
            read = np.char.decode(array[...], "utf-8") if expected.dtype.kind == "O" else array[...]
            if expected.dtype.kind != "O":
                assert array.dtype == expected.dtype, name
            np.testing.assert_array_equal(read, values, err_msg=name)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dmrpp") / "made.h5"
    make(path)
    path.with_name("made.h5.dmrpp").write_text(writer.document(path), encoding="utf-8")
    return path


def test_every_element_is_what_h5py_reads(made: Path) -> None:
    found = hs.open(f"{made}.dmrpp")
    assert found.format == "dmrpp"
    names = names_of(made)
    assert {array.name.strip("/") for array in found.walk()} == set(names)
    compare(found, made, names)
    assert found["time"].dims == ("time",)
    assert found["along"].dims is None  # one axis has no name


def test_places_of_chunks_are_those_of_the_file(made: Path) -> None:
    found, direct = hs.open(f"{made}.dmrpp"), hs.open(made)
    for array in direct.walk():
        said = found[array.name]
        if array.is_text or array.name in ("/compact", "/none"):
            continue
        assert said.chunks == array.chunks
        assert (said.codecs, said.stored_nbytes) == (array.codecs, array.stored_nbytes), array.name
        assert repr(said.fill_value) == repr(array.fill_value) or array.dtype.kind in "SV", array.name


def test_attributes(made: Path) -> None:
    found = hs.open(f"{made}.dmrpp")
    with h5py.File(made) as file:
        assert set(found.attrs) == set(file.attrs)
        for name, value in file.attrs.items():
            np.testing.assert_array_equal(np.asarray(found.attrs[name]).astype(str), np.asarray(value).astype(str))
    assert found["group/deeper"].attrs["big"] == -(2**63)
    assert found["sparse"].attrs["_FillValue"].dtype == np.float32


def test_documents_without_a_version_have_filters_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "made.h5"
    data = np.arange(23 * 31).reshape(23, 31)
    with h5py.File(path, "w") as file:
        low_level(file, "x", "<i4", (10, 10), ["shuffle", "deflate", "fletcher32"])[...] = data
    text = writer.document(path, version=None).replace("shuffle deflate fletcher32", "fletcher32 deflate shuffle")
    (tmp_path / "old.dmrpp").write_text(text.replace("OPeNDAP_DMRpp_DATA_ACCESS_URL", path.name))
    np.testing.assert_array_equal(hs.open(tmp_path / "old.dmrpp")["x"][...], data)


@pytest.mark.parametrize(
    "href",
    ["made.h5", "OPeNDAP_DMRpp_DATA_ACCESS_URL", "data/dmrpp/made.h5", "https://example.org/a/made.h5", "{path}",
     "file://{path}"],
)  # fmt: skip
def test_the_data_file_is_found(tmp_path: Path, href: str) -> None:
    path = tmp_path / "made.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(10)
    (tmp_path / "made.h5.dmrpp").write_text(writer.document(path, href.format(path=path)))
    found = hs.open(tmp_path / "made.h5.dmrpp")
    assert found["x"][3] == 3
    path.rename(tmp_path / "gone.h5")
    with pytest.raises(ReadError, match=r"made\.h5"):
        hs.open(tmp_path / "made.h5.dmrpp")["x"][...]


def test_chunks_in_files_of_their_own(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.bin").write_bytes(np.full(6, ord(name), "<i2").tobytes())
    chunk = '<dmrpp:chunk offset="{}" nBytes="6" chunkPositionInArray="{}" href="{}.bin"/>'
    chunks = chunk.format(0, "[0]", "a") + chunk.format(6, "[3]", "b") + chunk.format(0, "6", "b")
    body = (
        '<Int16 name="x"><Dim size="8"/><dmrpp:chunks byteOrder="LE"><dmrpp:chunkDimensionSizes>3'
        f"</dmrpp:chunkDimensionSizes>{chunks}</dmrpp:chunks></Int16>"
    )
    (tmp_path / "d.dmrpp").write_text(writer.of_values(body))
    assert hs.open(tmp_path / "d.dmrpp")["x"][...].tolist() == [97] * 3 + [98] * 5


def test_values_in_the_document(tmp_path: Path) -> None:
    values = np.array([[1.5, -2, np.nan], [4, 5, 6]])
    body = f"""<Float64 name="missing"><Dim size="2"/><Dim size="3"/>{writer.missing_data(values)}</Float64>
        <UInt8 name="flag">{writer.missing_data(np.uint8(7))}</UInt8>
        <String name="name"><dmrpp:compact>R29vZA==</dmrpp:compact></String>
        <String name="listed"><Dim size="4"/><dmrpp:vlsa><v>is</v><v c="2">so</v><v>swe&#235;t</v></dmrpp:vlsa></String>
        <Int32 name="filled"><Dim size="3"/><dmrpp:chunks fillValue="-7"/></Int32>
        <Attribute name="HDF5_GLOBAL" type="Container"><Attribute name="a" type="Int32"><Value value="9"/></Attribute>
        </Attribute><Attribute name="c" type="Container"><Attribute name="b" type="Float32"><Value>*</Value></Attribute>
        </Attribute>"""
    (tmp_path / "d.dmrpp").write_bytes(writer.of_values(body).encode("latin-1"))
    found = hs.open(tmp_path / "d.dmrpp")
    np.testing.assert_array_equal(found["missing"][...], values)
    assert found["flag"][...] == 7
    assert found["name"][...] == b"Good"
    assert [text.decode() for text in found["listed"][...]] == ["is", "so", "so", "sweët"]
    assert found["filled"][...].tolist() == [-7] * 3
    assert found.attrs["a"] == 9
    assert np.isnan(found.attrs["c.b"])


def test_long_texts_are_deflated(tmp_path: Path) -> None:
    texts = ["short", "ä" * 300, "ä" * 300, "", "x" * 300, "x" * 301, "<a & b>" * 5000]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=texts, dtype=h5py.string_dtype())
    text = writer.document(tmp_path / "a.h5", href="a.h5")
    assert ' s="600"' in text
    assert ' c="2"' in text
    (tmp_path / "a.h5.dmrpp").write_text(text)
    assert [one.decode() for one in hs.open(tmp_path / "a.h5.dmrpp")["x"][...]] == texts


def test_documents_do_not_hold_more_text_than_memory_bears(tmp_path: Path) -> None:
    bomb = base64.b64encode(zlib.compress(bytes(60 << 20))).decode()
    each = f'<dmrpp:vlsa><v s="{60 << 20}">{bomb}</v></dmrpp:vlsa>'
    body = "".join(f'<String name="x{number}"><Dim size="1"/>{each}</String>' for number in range(20))
    (tmp_path / "d.dmrpp").write_text(writer.of_values(body))
    found = hs.open(tmp_path / "d.dmrpp")
    assert len(list(found.walk())) < 9
    with pytest.raises(Unsupported, match="texts of more than"):
        found["x19"]


BROKEN = {
    "an entity of its own": ('<!DOCTYPE a [<!ENTITY b "bomb">]><Dataset name="&b;"/>', "entity|b"),
    "an entity in text": (writer.of_values('<Attribute name="a"><Value>&bomb;</Value></Attribute>'), "entity"),
    "deep nesting": ("<Dataset>" + "<Group name='a'>" * 100_000, "more than 128"),
    "an element that ends otherwise": ("<Dataset></Group>", "DMR"),
    "an end within an element": ("<Dataset><Group name='a'>", "ends within"),
    "two roots": ("<Dataset/><Dataset/>", "no root"),
    "another root": ("<html></html>", "html"),
    "a chunk without a place": (writer.of_values('<dmrpp:chunk nBytes="1"/>'), "without offset"),
    "many attributes": ("<Dataset " + " ".join(f'a{k}="1"' for k in range(100)) + "/>", "more than 64"),
}


@pytest.mark.parametrize("said", BROKEN)
def test_broken_documents_are_named(tmp_path: Path, said: str) -> None:
    text, message = BROKEN[said]
    (tmp_path / "d.dmrpp").write_text(text)
    with pytest.raises(HyperslabError, match=message):
        hs.open(tmp_path / "d.dmrpp")


CHUNKS = '<Int32 name="x"><Dim size="4"/><dmrpp:chunks{}><dmrpp:chunkDimensionSizes>2</dmrpp:chunkDimensionSizes>{}'
ENDED = "</dmrpp:chunks></Int32>"
PLACED = '<dmrpp:chunk offset="0" nBytes="8" chunkPositionInArray="[{}]"/>'
UNREADABLE = {
    "a gap without a fill value": (CHUNKS.format("", PLACED.format(0)) + ENDED, Unsupported, "no fill value"),
    "a position within a chunk": (CHUNKS.format("", PLACED.format(1)) + ENDED, DamagedFile, "at"),
    "a position outside": (CHUNKS.format("", PLACED.format(4)) + ENDED, DamagedFile, "at"),
    "one place twice": (CHUNKS.format("", PLACED.format(0) * 2) + ENDED, DamagedFile, "two chunks"),
    "a filter": (CHUNKS.format(' compressionType="zfp" fillValue="0"', PLACED.format(0)) + ENDED, Unsupported, "zfp"),
    "no bytes at all": ('<Int32 name="x"><Dim size="4"/></Int32>', Unsupported, "without bytes"),
    "base 64": ('<Int32 name="x"><dmrpp:compact>!!</dmrpp:compact></Int32>', DamagedFile, "base64"),
    "too few bytes": ('<Int32 name="x"><Dim size="9"/><dmrpp:compact>AAAA</dmrpp:compact></Int32>', DamagedFile, "36"),
    "no dimension": ('<Int32 name="x"><Dim name="/y"/></Int32>', DamagedFile, "dimension without"),
    "text": ('<String name="x"><Dim size="2"/>' + PLACED.format(0) + "</String>", Unsupported, "variable length"),
    "a sequence": ('<Sequence name="x"><Int32 name="y"/></Sequence>', Unsupported, "Sequence"),
    "too few linked blocks": (
        '<Int32 name="x"><Dim size="4"/><dmrpp:chunks><dmrpp:block offset="0" nBytes="8"/></dmrpp:chunks></Int32>',
        DamagedFile, "8 of 16 bytes",
    ),
    "more text than elements": (
        '<String name="x"><Dim size="2"/><dmrpp:vlsa><v c="999999999999">a</v></dmrpp:vlsa></String>',
        DamagedFile, "more texts",
    ),
    "a text of another length": (
        f'<String name="x"><dmrpp:vlsa>{writer.listed_text("a" * 400).replace("400", "401")}</dmrpp:vlsa></String>',
        DamagedFile, "deflated text of 401 bytes",
    ),
    "a text that is not deflated": (
        '<String name="x"><dmrpp:vlsa><v s="4">AQACAA==</v></dmrpp:vlsa></String>', DamagedFile, "deflated text of 4",
    ),
    "a text of no length": (
        '<String name="x"><dmrpp:vlsa><v s="many">AQACAA==</v></dmrpp:vlsa></String>', DamagedFile, "many",
    ),
    "a text without base 64": (
        '<String name="x"><dmrpp:vlsa><v s="4">!</v></dmrpp:vlsa></String>', DamagedFile, "base64",
    ),
    "an array wider than memory": (
        '<Int32 name="x"><Dim size="4611686018427387904"/><dmrpp:chunks fillValue="0"/></Int32>',
        DamagedFile, "2^64",
    ),
}  # fmt: skip


@pytest.mark.parametrize("said", UNREADABLE)
def test_what_cannot_be_read_is_named_and_the_rest_opens(tmp_path: Path, said: str) -> None:
    body, error, message = UNREADABLE[said]
    good = '<Int16 name="good"><Dim size="2"/><dmrpp:compact>AQACAA==</dmrpp:compact></Int16>'
    (tmp_path / "made.h5").write_bytes(bytes(16))
    (tmp_path / "d.dmrpp").write_text(writer.of_values(body + good))
    found = hs.open(tmp_path / "d.dmrpp")
    assert found["good"][...].tolist() == [1, 2]
    with pytest.raises(error, match=message.replace("^", r"\^")):
        read(found["x"])


def read(array: hs.Array) -> Any:
    array.plan()  # before memory is asked for
    return array[...]


def test_far_documents_stand_beside_their_files(made: Path, tmp_path: Path) -> None:
    servers = pytest.importorskip("servers")
    with servers.nginx(tmp_path / "nginx", made.parent) as server:
        found = hs.open(f"{server.url}/made.h5.dmrpp")
        compare(found, made, names_of(made))


def test_documents_lead_to_urls_but_far_ones_to_nothing_local(made: Path, tmp_path: Path) -> None:
    servers = pytest.importorskip("servers")
    text = (made.parent / "made.h5.dmrpp").read_text()
    old = re.search(r'dmrpp:href="([^"]*)"', text)
    assert old is not None
    with servers.nginx(tmp_path / "nginx", tmp_path) as server:
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "other.h5").write_bytes(made.read_bytes())
        document = tmp_path / "away.dmrpp"
        document.write_text(text.replace(old[0], f'dmrpp:href="{server.url}/data/other.h5"'))
        for place in (str(document), f"{server.url}/away.dmrpp"):
            compare(hs.open(place), made, names_of(made))
        for href in (str(made), "../data/other.h5"):
            document.write_text(text.replace(old[0], f'dmrpp:href="{href}"'))
            refused = hs.open(f"{server.url}/away.dmrpp")
            with pytest.raises(ReadError, match="not followed"):
                refused[names_of(made)[0]][...]


@pytest.mark.filterwarnings("ignore:.*(Zarr V3 spec|Zarr version 3 spec|consolidated|DMRpp)")
def test_virtualizarrs_own_parser_says_the_same(tmp_path: Path) -> None:
    virtualizarr = pytest.importorskip("virtualizarr")
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore

    path, data = tmp_path / "made.h5", np.arange(20 * 30).reshape(20, 30)
    with h5py.File(path, "w") as file:
        for name, options in {"deflated": {"compression": 3, "shuffle": True}, "plain": {"chunks": (5, 7)}}.items():
            file.create_dataset(name, data=data.astype("<f4"), **options)
        file["whole"] = data.astype("<i8")
    document = Path(f"{path}.dmrpp")
    document.write_text(writer.document(path))
    registry = ObjectStoreRegistry({"file://": LocalStore()})
    theirs = virtualizarr.parsers.DMRPPParser()(document.as_uri(), registry)._group.arrays
    from hyperslab.references.virtualizarr import HyperslabParser

    ours = HyperslabParser()(document.as_uri(), registry)._group.arrays
    assert set(ours) == set(theirs) == {"deflated", "plain", "whole"}
    for name, array in ours.items():
        assert array.manifest.dict() == theirs[name].manifest.dict()
        one, other = array.metadata, theirs[name].metadata
        assert (one.shape, one.chunk_grid, one.data_type) == (other.shape, other.chunk_grid, other.data_type)
