"""Files for the comparison of parsers: every feature of NetCDF-3, FITS, Zarr and HDF4 that these libraries write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

RANDOM = np.random.default_rng(7)


def make(folder: Path) -> Iterator[tuple[str, Path]]:
    """Write all files; give each one's format and path."""
    yield from netcdf3(folder)
    yield from fits(folder)
    yield from zarr_stores(folder)
    yield from hdf4(folder)


def netcdf3(folder: Path) -> Iterator[tuple[str, Path]]:
    """All three versions; fixed and record variables, one and several of them, of types that need padding."""
    import netCDF4

    versions = {"NETCDF3_CLASSIC": "bhifdc", "NETCDF3_64BIT_OFFSET": "bhifdc", "NETCDF3_64BIT_DATA": "bhifdcBHILq"}
    types = {"b": "i1", "h": "i2", "i": "i4", "f": "f4", "d": "f8", "c": "S1"}
    types |= {"B": "u1", "H": "u2", "I": "u4", "q": "i8", "L": "u8"}
    for version, letters in versions.items():
        for record_letters in ("", "b", "h", "bh", letters):
            path = folder / f"{version}_{record_letters or 'none'}.nc"
            with netCDF4.Dataset(path, "w", format=version) as file:
                file.title = "made"
                file.createDimension("time", None)
                file.createDimension("x", 5)
                file.createDimension("y", 3)
                for letter in letters:
                    _netcdf_variable(file, f"fixed_{letter}", types[letter], ("y", "x"), (3, 5))
                for letter in record_letters:
                    _netcdf_variable(file, f"record_{letter}", types[letter], ("time", "x"), (4, 5))
                if record_letters == letters:
                    _netcdf_variable(file, "series", "i2", ("time",), (4,))
                    _netcdf_variable(file, "scalar", "f8", (), ())
            yield "netcdf3", path


def _netcdf_variable(file, name, dtype, dimensions, shape):
    variable = file.createVariable(name, dtype, dimensions)
    variable.units = "m"
    variable[...] = _values(shape, dtype)


def _values(shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "S":
        return RANDOM.integers(97, 123, shape, dtype="u1").view("S1").reshape(shape)
    if dtype.kind in "iu":
        information = np.iinfo(dtype)
        return RANDOM.integers(information.min // 2, information.max // 2, shape, dtype=dtype.newbyteorder("=")).astype(
            dtype
        )
    return RANDOM.normal(size=shape).astype(dtype)


def fits(folder: Path) -> Iterator[tuple[str, Path]]:
    """Images of all types, two with one name; a binary table; a compressed image."""
    import fitsio

    path = folder / "made.fits"
    with fitsio.FITS(path, "rw") as file:
        file.write(_values((3, 4, 5), "i2"))
        for dtype in ("u1", "i4", "i8", "f4", "f8", "u2", "u4"):
            file.write(_values((3, 4, 5), dtype), extname="IMAGE", extver=len(file))
        table = np.zeros(7, [("a", "i4"), ("b", "f8", (2, 3)), ("s", "S9"), ("c", "c16"), ("u", "u2"), ("l", "?")])
        table["a"], table["b"], table["s"] = np.arange(7), RANDOM.normal(size=(7, 2, 3)), b"text"
        table["c"], table["u"], table["l"] = 1 + 2j, 40000, [1, 0, 1, 0, 1, 0, 1]
        file.write(table, extname="TABLE")
        file.write(_values((40, 40), "i4"), extname="TILES", compress="rice")
        file["IMAGE", 1].write_key("LONGTEXT", "x" * 200)
    yield "fits", path


def zarr_stores(folder: Path) -> Iterator[tuple[str, Path]]:
    """Both versions, all codecs, orders, separators, fill values, missing chunks, shards."""
    for version in (2, 3):
        for consolidated in (False, True):
            path = folder / f"version{version}_{consolidated}.zarr"
            _zarr_store(path, version, consolidated)
            yield "zarr", path


def _zarr_store(path: Path, version: int, consolidated: bool) -> None:
    import zarr

    root = zarr.open_group(path, mode="w", zarr_format=version)
    root.attrs.update({"title": "made", "numbers": [1, 2], "nothing": None, "nan": float("nan")})
    group = root.create_group("inner/deep")
    for dtype in ("i1", "<i2", ">i4", "u8", "<f2", "<f4", ">f8", "c8", "?", "<M8[s]", "<U5", "S4"):
        array = group.create_array(f"type_{dtype.strip('<>?') or 'bool'}", shape=(7, 5), chunks=(3, 2), dtype=dtype)
        array[:3] = _of_type((3, 5), dtype)
    for fill in (np.nan, np.inf, -np.inf, 1.5):
        group.create_array(f"fill_{fill}", shape=(4,), chunks=(2,), dtype="f8", fill_value=fill)
    group.create_array("fill_int", shape=(4,), chunks=(2,), dtype="u8", fill_value=2**64 - 1)
    group.create_array("scalar", shape=(), chunks=(), dtype="f4", fill_value=3)
    for name, arguments in (_codecs_2() if version == 2 else _codecs_3()).items():
        array = group.create_array(f"codec_{name}", shape=(9, 10, 3), chunks=(4, 6, 2), dtype="i4", **arguments)
        array[2:9, 3:] = _values((7, 7, 3), "i2").astype("i4")
    if version == 3:
        _shards(group)
    if consolidated:
        zarr.consolidate_metadata(path)


def _of_type(shape, dtype):
    kind = np.dtype(dtype).kind
    if kind == "M":
        return _values(shape, "i4").astype("i8").view(dtype)
    if kind in "US":
        return np.full(shape, "abc", dtype)
    if kind == "b":
        return _values(shape, "i1") > 0
    if kind == "c":
        return (_values(shape, "f4") + 1j * _values(shape, "f4")).astype(dtype)
    return _values(shape, dtype)


def _codecs_2() -> dict[str, dict]:
    import numcodecs

    compressors = {
        "none": None,
        "zlib": numcodecs.Zlib(),
        "gzip": numcodecs.GZip(),
        "bz2": numcodecs.BZ2(),
        "lz4": numcodecs.LZ4(),
        "zstd": numcodecs.Zstd(),
        "blosc": numcodecs.Blosc(),
    }
    codecs = {name: {"compressors": codec} for name, codec in compressors.items()}
    codecs["fortran"] = {"compressors": numcodecs.Zlib(), "order": "F"}
    codecs["slash"] = {"chunk_key_encoding": {"name": "v2", "separator": "/"}}
    codecs["shuffle"] = {"filters": [numcodecs.Shuffle(4)], "compressors": numcodecs.Zlib()}
    codecs["delta"] = {"filters": [numcodecs.Delta("<i4")], "compressors": numcodecs.Zlib()}
    offset = numcodecs.FixedScaleOffset(offset=5, scale=1, dtype="<i4", astype="<i8")
    codecs["fixedscaleoffset"] = {"filters": [offset], "compressors": None}
    return codecs


def _codecs_3() -> dict[str, dict]:
    from zarr import codecs as c

    return {
        "none": {"compressors": None},
        "gzip": {"compressors": c.GzipCodec()},
        "zstd": {"compressors": c.ZstdCodec()},
        "blosc": {"compressors": c.BloscCodec()},
        "crc32c": {"compressors": [c.ZstdCodec(), c.Crc32cCodec()]},
        "big": {"serializer": c.BytesCodec(endian="big")},
        "transpose": {"filters": [c.TransposeCodec(order=(2, 0, 1))]},
        "dot": {"chunk_key_encoding": {"name": "default", "separator": "."}},
        "keys_2": {"chunk_key_encoding": {"name": "v2", "separator": "."}},
    }


def _shards(group) -> None:
    from zarr.codecs import BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec

    for location in ("start", "end"):
        serializer = ShardingCodec(
            chunk_shape=(3, 2),
            codecs=[TransposeCodec(order=(1, 0)), BytesCodec(), GzipCodec()],
            index_location=location,
        )
        array = group.create_array(
            f"shards_{location}",
            shape=(20, 15),
            chunks=(9, 6),
            dtype="f4",
            serializer=serializer,
            compressors=None,
            fill_value=4,
            dimension_names=("y", "x"),
        )
        array[2:12, 1:9] = _values((10, 8), "f4")
    plain = ShardingCodec(chunk_shape=(2,), codecs=[BytesCodec()], index_codecs=[BytesCodec(), Crc32cCodec()])
    array = group.create_array("shards_plain", shape=(13,), chunks=(4,), dtype="u2", serializer=plain, compressors=None)
    array[...] = np.arange(13)


def hdf4(folder: Path) -> Iterator[tuple[str, Path]]:
    """Contiguous, compressed and unlimited data of all types, with attributes, dimensions and empty arrays."""
    from pyhdf.SD import SD, SDC

    path = folder / "made.hdf"
    file = SD(str(path), SDC.WRITE | SDC.CREATE)
    file.title = "made"
    kinds = {"i1": SDC.INT8, "u1": SDC.UINT8, "i2": SDC.INT16, "u2": SDC.UINT16}
    kinds |= {"i4": SDC.INT32, "u4": SDC.UINT32, "f4": SDC.FLOAT32, "f8": SDC.FLOAT64}
    for name, kind in kinds.items():
        values = _values((6, 5, 4), name)
        _hdf4_array(file, f"plain_{name}", kind, values)
        for code in (SDC.COMP_DEFLATE, SDC.COMP_RLE, SDC.COMP_SKPHUFF):
            _hdf4_array(file, f"coder{code}_{name}", kind, values, code)
        file.create(f"empty_{name}", kind, (3, 2))
        grown = file.create(f"grown_{name}", kind, (SDC.UNLIMITED, 5))
        for start in range(0, 12, 3):
            grown[start : start + 3] = _values((3, 5), name)
    long = file.create("long", SDC.FLOAT32, (SDC.UNLIMITED, 50))
    other = file.create("other", SDC.INT16, (SDC.UNLIMITED, 33))
    for start in range(0, 200, 10):
        long[start : start + 10] = _values((10, 50), "f4")
        other[start : start + 10] = _values((10, 33), "i2")
    filled = file.create("filled", SDC.INT16, (4, 4))
    filled.setfillvalue(7)
    for array in (long, other, filled, grown):
        array.endaccess()
    file.end()
    yield "hdf4", path


def _hdf4_array(file, name, kind, values, code=None) -> None:
    from pyhdf.SD import SDC

    array = file.create(name, kind, values.shape)
    array.units = "m"
    array.dim(0).setname("time")
    array.dim(1).setname("y")
    array.dim(2).setname("x")
    if code == SDC.COMP_DEFLATE:
        array.setcompress(code, 6)
    elif code == SDC.COMP_SKPHUFF:
        array.setcompress(code, values.itemsize)
    elif code is not None:
        array.setcompress(code)
    array.set(values)
    array.endaccess()
