"""Handmade files of every format with absurd numbers, to test our messages about them."""

from __future__ import annotations

import json
import os
import struct
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

HUGE = (0, -1, 1 << 31, (1 << 32) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64, 10**30)
BLOCK = 2880
# Each number gets one in three of the values. HYPERSLAB_ABSURD=all tries all of them, in a minute.
STEP = 1 if os.environ.get("HYPERSLAB_ABSURD") == "all" else 3


KINDS = ("fits", "nc", "zarr", "json", "dmrpp", "hdf")


def make(folder: Path, kind: str) -> Iterator[tuple[str, Path]]:
    """Write the files of a kind; yield the name and path of each."""
    (folder / "0.bin").write_bytes(bytes(BLOCK))
    contents = {"fits": fits, "nc": netcdf3, "zarr": zarr, "json": references, "dmrpp": dmrpp, "hdf": hdf4}
    for number, (name, made) in enumerate(contents[kind]()):
        if number % STEP:
            continue
        path = folder / f"{number}.{kind}"
        if isinstance(made, bytes):
            path.write_bytes(made)
        else:
            for inner, data in made.items():
                (path / inner).parent.mkdir(parents=True, exist_ok=True)
                (path / inner).write_bytes(data)
        yield f"{kind}: {name}", path


def cards(**values: object) -> bytes:
    """A FITS header."""
    said = {name.replace("_", "-"): f"'{value}'" if isinstance(value, str) else value for name, value in values.items()}
    lines = [f"{name:8}= {('T' if value is True else value)!s:>20}" for name, value in said.items()]
    text = "".join(f"{line:80}" for line in [*lines, "END"])
    return f"{text:{-(-len(text) // BLOCK) * BLOCK}}".encode()


def fits() -> Iterator[tuple[str, bytes]]:
    """Images, tables and compressed images."""
    data = bytes(BLOCK)
    for name, value in product(("BITPIX", "NAXIS", "NAXIS1", "NAXIS2", "BZERO", "BSCALE", "BLANK"), HUGE):
        good = {"SIMPLE": True, "BITPIX": 16, "NAXIS": 2, "NAXIS1": 3, "NAXIS2": 4}
        yield f"image {name} {value}", cards(**good | {name: value}) + data
    for one in HUGE:
        yield f"image of {one} squared", cards(SIMPLE=True, BITPIX=-64, NAXIS=2, NAXIS1=one, NAXIS2=one) + data
    first = cards(SIMPLE=True, BITPIX=8, NAXIS=0)
    table = {"XTENSION": "BINTABLE", "BITPIX": 8, "NAXIS": 2, "NAXIS1": 12, "NAXIS2": 4, "PCOUNT": 0, "GCOUNT": 1}
    table |= {"TFIELDS": 2, "TFORM1": "1J", "TTYPE1": "a", "TFORM2": "8A", "TTYPE2": "b"}
    for name, value in product(("NAXIS1", "NAXIS2", "PCOUNT", "GCOUNT", "TFIELDS", "THEAP"), HUGE):
        yield f"table {name} {value}", first + cards(**table | {name: value}) + data
    for letter, value in product("AXJDPQM", HUGE):
        yield f"table form {value}{letter}", first + cards(**table | {"TFORM2": f"{value}{letter}"}) + data
        width = {"NAXIS1": 4 + value * {"A": 1, "J": 4, "D": 8, "P": 8, "Q": 16, "M": 16}.get(letter, 1)}
        yield (
            f"table as wide as {value}{letter}",
            first + cards(**table | width | {"TFORM2": f"{value}{letter}"}) + data,
        )
    for value in HUGE:
        yield f"table shape {value}", first + cards(**table | {"TDIM2": f"({value},{value})"}) + data
    tiled = table | {"TFIELDS": 1, "NAXIS1": 8, "TTYPE1": "COMPRESSED_DATA", "TFORM1": "1PB(9)", "ZIMAGE": True}
    tiled |= {"ZCMPTYPE": "RICE_1", "ZBITPIX": 16, "ZNAXIS": 2, "ZNAXIS1": 4, "ZNAXIS2": 4, "ZTILE1": 4, "ZTILE2": 1}
    for name, value in product(("ZBITPIX", "ZNAXIS", "ZNAXIS1", "ZNAXIS2", "ZTILE1", "ZTILE2"), HUGE):
        yield f"compressed image {name} {value}", first + cards(**tiled | {name: value}) + data
    for value in HUGE:
        yield f"block {value}", first + cards(**tiled | {"ZNAME1": "BLOCKSIZE", "ZVAL1": value}) + data


def netcdf3() -> Iterator[tuple[str, bytes]]:
    """Headers of the versions 1, 2 and 5 with one number changed."""
    names = ("records", "dimension", "attribute", "nbytes", "place", "name", "dimensions", "variables", "axis", "type")
    for version, name, value in product((1, 2, 5), names, HUGE):
        width = 8 if version == 5 else 4
        for record in (False, True):
            if 0 <= value < 1 << 8 * (8 if name == "place" and version == 2 else width):
                yield f"CDF{version} {name} {value} {record}", _netcdf3(version, record, {name: value})


def _netcdf3(version: int, is_record: bool, changed: dict[str, int]) -> bytes:
    count = ">Q" if version == 5 else ">I"
    place = ">I" if version == 1 else ">Q"

    def number(form: str, name: str, value: int) -> bytes:
        given = changed.get(name, value)
        return struct.pack(form, given & ((1 << 8 * struct.calcsize(form)) - 1))

    def tagged(tag: int, how_many: bytes) -> bytes:
        return struct.pack(">I", tag) + how_many

    def named(length: bytes, name: bytes) -> bytes:
        return length + name

    header = b"CDF" + bytes([version]) + number(count, "records", 2)
    header += tagged(10, number(count, "dimensions", 2))
    header += named(struct.pack(count, 4), b"time") + struct.pack(count, 0)
    header += named(struct.pack(count, 4), b"long") + number(count, "dimension", 3)
    header += tagged(0, struct.pack(count, 0))
    header += tagged(11, number(count, "variables", 1))
    header += named(number(count, "name", 4), b"vari")
    axes = [0, 1] if is_record else [1, 1]
    header += struct.pack(count, 2) + number(count, "axis", axes[0]) + struct.pack(count, axes[1])
    header += tagged(12, struct.pack(count, 1)) + named(struct.pack(count, 4), b"attr") + struct.pack(">I", 6)
    header += number(count, "attribute", 1) + struct.pack(">d", 1.5)
    header += number(">I", "type", 4) + number(count, "nbytes", 36) + number(place, "place", len(header) + 40)
    return header + bytes(200)


def hdf4() -> Iterator[tuple[str, bytes]]:
    """A small file with one number changed at a time; runs of zeros are skipped."""
    from pyhdf.SD import SD, SDC

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.hdf"
        file = SD(path, SDC.WRITE | SDC.CREATE)
        plain, packed = file.create("plain", SDC.INT16, (3, 4)), file.create("packed", SDC.FLOAT64, (2, 5))
        packed.setcompress(SDC.COMP_DEFLATE, 6)
        plain.units = "m"
        plain[:], packed[:] = [[1] * 4] * 3, [[2.5] * 5] * 2
        for array in (plain, packed):
            array.endaccess()
        file.end()
        good = Path(path).read_bytes()
    places = [place for place in range(4, len(good) - 4, 2) if any(good[place : place + 4])]
    for place, value in product(places[::3], (b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0")):
        yield f"{value!r} at {place}", good[:place] + value + good[place + 4 :]


def zarr() -> Iterator[tuple[str, dict[str, bytes]]]:
    """Arrays of both Zarr versions, each with a single change."""
    good2 = {"zarr_format": 2, "shape": [4, 4], "chunks": [2, 2], "dtype": "<i4", "fill_value": 0, "order": "C"}
    good2 |= {"compressor": None, "filters": None}
    for name, value in changes2():
        yield f"2 {name} {value}", {".zarray": json.dumps(good2 | {name: value}).encode(), "0.0": bytes(16)}
    bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
    good3 = {"zarr_format": 3, "node_type": "array", "shape": [4, 4], "data_type": "int32", "fill_value": 0}
    good3 |= {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}}, "codecs": [bytes_codec]}
    good3 |= {"chunk_key_encoding": {"name": "default"}}
    for name, value in changes3(bytes_codec):
        yield f"3 {name} {value}", {"zarr.json": json.dumps(good3 | {name: value}).encode(), "c/0/0": bytes(16)}


def changes2() -> Iterator[tuple[str, object]]:
    for name, value in product(("shape", "chunks"), HUGE):
        yield name, [value, 4]
        yield name, [value, value]
        yield name, [value]
    yield from (("shape", [1] * 40), ("shape", [1 << 40] * 40), ("shape", {}), ("shape", [1.5, 2]), ("shape", ["a", 1]))
    for letter, value in product("SUVifcMmb", (*HUGE, 3)):
        yield "dtype", f"<{letter}{value}"
    for value in HUGE:
        yield "dtype", [["a", "<i4", [value]], ["b", "<i4"]]
        yield "dtype", [["a", "<i4", [value, value]], ["b", "<i4"]]
        yield "dtype", [["a", f"|S{value}"], ["b", f"|S{value}"]]
        yield "fill_value", value
        yield "filters", [{"id": "delta", "dtype": f"<S{value}"}]
        yield "filters", [{"id": "shuffle", "elementsize": value}]
        yield "filters", [{"id": "fixedscaleoffset", "scale": value, "offset": value, "dtype": "<f8", "astype": "|u1"}]
        yield "filters", [{"id": "quantize", "digits": value, "dtype": "<f8"}]
        yield "compressor", {"id": "blosc", "cname": "lz4", "clevel": value, "shuffle": value, "blocksize": value}
        yield "compressor", {"id": "zlib", "level": value}
        yield "dtype", f"<M8[{value}s]"
    yield "dtype", [["a", "<i4"], ["a", "<i4"]]
    yield "dtype", [["a", [["b", "<i4", [1] * 70]]]]
    yield "dtype", [["a", "<i4", [1 << 20] * 10]]
    yield "dtype", "<M8[parsec]"
    yield "dtype", "<M8"
    yield "dtype", []
    for value in ("AAAA" * 100, "x" * 1000, "NaN", [1, 2], {}, True, 1e400, -1e308, "é", 1 << 32):
        yield "fill_value", value


def changes3(bytes_codec: dict[str, object]) -> Iterator[tuple[str, object]]:
    for value in HUGE:
        yield "shape", [value, 4]
        yield "shape", [value, value]
        yield "fill_value", value
        for shape in ([value, 2], [value, value]):
            yield "chunk_grid", {"name": "regular", "configuration": {"chunk_shape": shape}}
            inner = {"chunk_shape": shape, "codecs": [bytes_codec], "index_codecs": [bytes_codec]}
            yield "codecs", [{"name": "sharding_indexed", "configuration": inner}]
        yield "chunk_grid", {"name": "rectangular", "configuration": {"chunk_shape": [[value, 1], [[value, 4]]]}}
        yield (
            "chunk_grid",
            {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [value, [2, 2]]}},
        )
        kinds = ("fixed_length_utf32", "null_terminated_bytes", "raw_bytes")
        for name in kinds:
            yield "data_type", {"name": name, "configuration": {"length_bytes": value}}
        scaled = {"unit": "s", "scale_factor": value}
        yield "data_type", {"name": "numpy.datetime64", "configuration": scaled}
        yield "data_type", f"r{value}"
        yield "data_type", f"r{value * 8}"
        yield "codecs", [{"name": "transpose", "configuration": {"order": [value, 0]}}, bytes_codec]
        yield "codecs", [bytes_codec, {"name": "gzip", "configuration": {"level": value}}]
    for shape in ([1] * 40, [1 << 40] * 40):
        yield "shape", shape
    field = {"name": "a", "data_type": {"name": "null_terminated_bytes", "configuration": {"length_bytes": 1 << 62}}}
    yield "data_type", {"name": "structured", "configuration": {"fields": [field, field | {"name": "b"}]}}
    yield "data_type", {"name": "structured", "configuration": {"fields": [field, field]}}
    yield "data_type", {"name": "numpy.datetime64", "configuration": {"unit": "parsec", "scale_factor": 1}}
    yield "data_type", {"name": "fixed_length_utf32", "configuration": {"length_bytes": 3}}
    for value in ("NaN", "0x" + "f" * 40, [1, 2], {}, True, "AAAA" * 100):
        yield "fill_value", value


def references() -> Iterator[tuple[str, bytes]]:
    """kerchunk's JSON with chunks at impossible offsets."""
    array = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<i4", "fill_value": 0, "order": "C"}
    array |= {"compressor": None, "filters": None}
    for offset, nbytes in product(HUGE, HUGE):
        refs = {".zgroup": '{"zarr_format":2}', "x/.zarray": json.dumps(array), "x/0": ["0.bin", offset, nbytes]}
        yield f"chunk {offset} {nbytes}", json.dumps({"version": 1, "refs": refs}).encode()
    for name, value in changes2():
        refs = {".zgroup": '{"zarr_format":2}', "x/.zarray": json.dumps(array | {name: value}), "x/0": "text"}
        yield f"array {name} {value}", json.dumps({"version": 1, "refs": refs}).encode()


def dmrpp() -> Iterator[tuple[str, bytes]]:
    """Variables of DAP4 with one number changed."""
    good = {"size": 4, "offset": 0, "nBytes": 16, "chunk": 2, "place": 0, "level": 6}
    for name, value in product(good, HUGE):
        changed = good | {name: value}
        yield f"{name} {value}", DMRPP.format(**changed).encode()
    for value in HUGE:
        changed = good | {"size": value, "chunk": value, "offset": value, "nBytes": value}
        yield f"all {value}", DMRPP.format(**changed).encode()


DMRPP = """<?xml version="1.0" encoding="ISO-8859-1"?>
<Dataset xmlns="http://xml.opendap.org/ns/DAP/4.0#" xmlns:dmrpp="http://xml.opendap.org/dap/dmrpp/1.0.0#"
 dapVersion="4.0" dmrVersion="1.0" name="a" dmrpp:href="0.bin" dmrpp:version="3.20">
<Dimension name="x" size="{size}"/>
<Int32 name="whole"><Dim name="/x"/>
<dmrpp:chunks byteOrder="LE"><dmrpp:chunk offset="{offset}" nBytes="{nBytes}"/></dmrpp:chunks></Int32>
<Float64 name="square"><Dim name="/x"/><Dim name="/x"/>
<dmrpp:chunks compressionType="deflate" deflateLevel="{level}" fillValue="0" byteOrder="LE">
<dmrpp:chunkDimensionSizes>{chunk} {chunk}</dmrpp:chunkDimensionSizes>
<dmrpp:chunk offset="{offset}" nBytes="{nBytes}" chunkPositionInArray="[{place},{place}]"/>
</dmrpp:chunks></Float64>
<String name="text"><Dim name="/x"/><dmrpp:FixedLengthStringArray string_length="{size}" pad="null_pad"/>
<dmrpp:chunks byteOrder="LE"><dmrpp:chunk offset="{offset}" nBytes="{nBytes}"/></dmrpp:chunks></String>
</Dataset>
"""
