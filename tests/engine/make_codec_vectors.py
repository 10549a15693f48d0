"""Makes the golden vectors of the codecs: chunks that other libraries encoded, with what they decode to.

Run with h5py, hdf5plugin, numcodecs and astropy installed; it writes `vectors.txt` and `encoded.bin` into
`crates/hyperslab-engine/tests/golden/`. A line of the index has, between tabs: a name; the codec chain in the order
of encoding, as `name:parameters` between semicolons; the filter mask; the decoded size and its CRC-32; and where the
encoded chunk lies in `encoded.bin`. The same random numbers every time, so that a change shows.
"""

import ctypes
import itertools
import zlib
from collections.abc import Callable
from pathlib import Path

import fits_vectors
import h5py
import hdf5plugin
import numcodecs
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z

GOLDEN = Path(__file__).parents[2] / "crates" / "hyperslab-engine" / "tests" / "golden"
RANDOM = np.random.default_rng(20)

index: list[str] = []
encoded_chunks = bytearray()
names: set[str] = set()


def add(name: str, chain: str, encoded: bytes, decoded: bytes, mask: int = 0) -> None:
    """Keep one vector."""
    assert name not in names, name
    names.add(name)
    fields = [name, chain, mask, len(decoded), f"{zlib.crc32(decoded):08x}", len(encoded_chunks), len(encoded)]
    index.append("\t".join(str(field) for field in fields))
    encoded_chunks.extend(encoded)


# HDF5: the library encodes on writing and decodes on reading; the encoded chunk is read directly.


def spec(number: int, values: tuple[int, ...]) -> str:
    """A filter of a file, as a codec of a chain: what the HDF5 parser does."""
    numbers = ",".join(str(value) for value in values)
    match number:
        case 1:
            return "zlib"
        case 2:
            return f"shuffle:{values[0]}"
        case 3:
            return "fletcher32"
        case 4:
            return f"szip:{values[0]},{values[2]},{values[1]},{values[3]}"
        case 5:
            return f"nbit:{numbers}"
        case 6:
            return f"scaleoffset:{numbers}"
        case 307:
            return "bzip2"
        case 32008:
            inner = {0: "none", 2: "lz4", 3: "zstd"}[values[4] if len(values) > 4 else 0]
            return f"bitshuffle:{values[2]},{values[3] if len(values) > 3 else 0},{inner}"
        case _:
            return {32000: "lzf", 32001: "blosc", 32004: "lz4hdf5", 32015: "zstd", 32026: "blosc2"}[number]


def hdf5(
    name: str,
    array: np.ndarray,
    setup: Callable[[h5p.PropDCID], None],
    file_type: h5t.TypeID | None = None,
    direct: tuple[Callable[[bytes], bytes], int] | None = None,
) -> None:
    """One chunk, through a pipeline. `direct` makes the stored bytes of the encoded ones, and gives a mask."""
    file_type = file_type or h5t.py_create(array.dtype)
    file_id = h5py.File(f"{name}.h5", "w", driver="core", backing_store=False).id
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_chunk(array.shape)
    setup(properties)
    dataset = h5d.create(file_id, b"a", file_type, h5s.create_simple(array.shape), properties)
    dataset.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(array), mtype=file_type)
    corner = (0,) * array.ndim
    del dataset  # so that the chunk leaves the cache
    dataset = h5d.open(file_id, b"a")
    mask, encoded = dataset.read_direct_chunk(corner)
    if direct:
        encoded, mask = direct[0](encoded), direct[1]
        dataset.write_direct_chunk(corner, encoded, mask)
        del dataset
        dataset = h5d.open(file_id, b"a")
    decoded = np.zeros(array.shape, f"V{file_type.get_size()}")
    dataset.read(h5s.ALL, h5s.ALL, decoded, mtype=file_type)
    stored = dataset.get_create_plist()
    filters = [stored.get_filter(i) for i in range(stored.get_nfilters())]
    add(name, ";".join(spec(number, values) for number, _, values, _ in filters), encoded, decoded.tobytes(), mask)


def filters(*wanted: tuple[int, tuple[int, ...]] | object) -> Callable[[h5p.PropDCID], None]:
    """Sets a pipeline of filter numbers with values, or of hdf5plugin's filters."""

    def setup(properties: h5p.PropDCID) -> None:
        for one in wanted:
            if isinstance(one, tuple):
                number, values = one
            else:
                number, values = one["compression"], one["compression_opts"]
            properties.set_filter(number, h5z.FLAG_OPTIONAL, values)

    return setup


def smooth(count: int, dtype: str) -> np.ndarray:
    """A curve in steps, with a little noise: what compresses somewhat."""
    values = 1000 * np.sin(np.arange(count) / 50).round(1) + RANDOM.integers(0, 3, count) + 1200
    if np.dtype(dtype).kind == "c":
        return (values + 1j * values[::-1]).astype(dtype)
    if np.dtype(dtype).kind in "SV":
        return np.frombuffer(bytes(int(v) % 50 for v in np.repeat(values, np.dtype(dtype).itemsize)), dtype)
    if np.dtype(dtype).itemsize == 1:
        values = values / 20
    return values.astype(dtype)


def half_noise(count: int, dtype: str) -> np.ndarray:
    """What compresses in one half and not in the other."""
    return np.concatenate([np.full(count - count // 2, 5, dtype), noise(count // 2, dtype)])


def noise(count: int, dtype: str) -> np.ndarray:
    """What does not compress."""
    return np.frombuffer(RANDOM.bytes(count * np.dtype(dtype).itemsize), dtype)


SHUFFLE = (2, ())
ZLIB = (1, (6,))
FLETCHER = (3, ())


def chains() -> None:
    """Combinations of HDF5's own filters, in every order, with filters skipped."""
    data = smooth(90, "<f4")
    hdf5("zlib", data, filters(ZLIB))
    hdf5("shuffle_zlib", data, filters(SHUFFLE, ZLIB))
    hdf5("zlib_twice", data, filters(ZLIB, ZLIB))
    hdf5("zlib_three_times_constant", np.zeros(20000, "<f4"), filters(ZLIB, ZLIB, ZLIB))
    hdf5("shuffle_zlib_fletcher", data, filters(SHUFFLE, ZLIB, FLETCHER))
    hdf5("fletcher_shuffle_zlib", data, filters(FLETCHER, SHUFFLE, ZLIB))
    hdf5("fletcher_zlib_zlib", data, filters(FLETCHER, ZLIB, ZLIB))
    hdf5("zlib_shuffle_zlib", data, filters(ZLIB, SHUFFLE, ZLIB))
    hdf5("shuffle_shuffle", data, filters((2, (4,)), (2, (4,))))
    hdf5("shuffle_alone", data, filters(SHUFFLE))
    hdf5("fletcher_alone", data, filters(FLETCHER))
    hdf5("fletcher_odd", noise(333, "u1"), filters(FLETCHER))
    hdf5("fletcher_three_bytes", noise(3, "u1"), filters(FLETCHER))
    hdf5("fletcher_long", half_noise(723, "u1"), filters(FLETCHER))
    hdf5("fletcher_zeros", np.zeros(100, "u1"), filters(FLETCHER))
    hdf5("fletcher_ones", np.full(723, 255, "u1"), filters(FLETCHER))
    swap = lambda b: b[:-4] + bytes([b[-3], b[-4], b[-1], b[-2]])  # noqa: E731
    hdf5("fletcher_of_old_libraries", noise(101, "u1"), filters(FLETCHER), direct=(swap, 0))
    pipeline = filters(SHUFFLE, ZLIB, FLETCHER)
    hdf5("mask_all", data, pipeline, direct=(lambda _: data.tobytes(), 7))
    hdf5("mask_zlib", data, pipeline, direct=(lambda _: planes_summed(data), 2))
    hdf5("mask_shuffle", data, pipeline, direct=(lambda _: summed(zlib.compress(data.tobytes())), 1))
    hdf5("mask_fletcher", data, pipeline, direct=(lambda encoded: encoded[:-4], 4))
    hdf5("mask_shuffle_zlib", data, pipeline, direct=(lambda _: summed(data.tobytes()), 3))
    for dtype, count in [("u1", 100), ("<i2", 77), (">i2", 77), ("S3", 50), ("<c16", 40), ("V12", 37), ("S1", 1)]:
        hdf5(f"shuffle_zlib_{dtype.strip('<>')}_{dtype[0] == '>'}", smooth(count, dtype), pipeline)
    for width, count in [(3, 100), (7, 50), (16, 40), (5, 1), (1001, 50)]:
        # A width that is not the element's, so that bytes are left over.
        add(f"shuffle_{width}_remainder", f"shuffle:{width}", *shuffled(smooth(count, "<f4").tobytes(), width))
        add(
            f"shuffle_{width}_remainder_zlib",
            f"zlib;shuffle:{width};zlib",
            *middle(smooth(count, "<f4").tobytes(), width),
        )


def summed(data: bytes) -> bytes:
    """With HDF5's checksum, by numcodecs."""
    return bytes(numcodecs.Fletcher32().encode(np.frombuffer(data, "u1")))


def planes_summed(data: np.ndarray) -> bytes:
    return summed(shuffled(data.tobytes(), data.itemsize)[0])


def shuffled(data: bytes, width: int) -> tuple[bytes, bytes]:
    """Shuffled as HDF5 does it, remainder last; and the data."""
    count = len(data) // width
    whole = np.frombuffer(data[: count * width], "u1").reshape(count, width)
    return whole.T.tobytes() + data[count * width :], data


def middle(data: bytes, width: int) -> tuple[bytes, bytes]:
    return zlib.compress(shuffled(zlib.compress(data), width)[0]), data


def bytes_of_all_codecs() -> None:
    """Registered filters that take bytes as they are."""
    plugins = {
        "lzf": (32000, ()),
        "lz4": hdf5plugin.LZ4(),
        "lz4_blocks": hdf5plugin.LZ4(nbytes=512),
        "zstd": hdf5plugin.Zstd(),
        "bzip2": hdf5plugin.BZip2(),
    }
    for plugin, one in plugins.items():
        hdf5(f"{plugin}_smooth", smooth(151, "<f4"), filters(one))
        hdf5(f"{plugin}_noise", half_noise(255, "u1"), filters(one))
        hdf5(f"{plugin}_constant", np.full(2001, 7, "<i4"), filters(one))
        hdf5(f"{plugin}_one", noise(1, "<f8"), filters(one))
        hdf5(f"{plugin}_shuffled", smooth(75, ">f8"), filters(SHUFFLE, one, FLETCHER))
        hdf5(f"{plugin}_periodic", np.tile(noise(60, "u1"), 9).repeat(3), filters(one))


def bitshuffles() -> None:
    for inner, dtype in itertools.product(["none", "lz4", "zstd"], ["u1", "<i2", ">f4", "<f8", "<c16", "S3"]):
        data = smooth(27 if inner == "none" else 139, dtype)
        hdf5(f"bitshuffle_{inner}_{dtype}", data, filters(hdf5plugin.Bitshuffle(cname=inner)))
    for inner in ["none", "lz4", "zstd"]:
        for count, block in [(7, 0), (8, 0), (261, 64), (101, 16)]:
            one = hdf5plugin.Bitshuffle(nelems=block, cname=inner)
            hdf5(f"bitshuffle_{inner}_{count}_{block}", smooth(count, "<u2"), filters(one))
    hdf5("bitshuffle_lz4_constant", np.full(9999, 3.5, "<f4"), filters(hdf5plugin.Bitshuffle(cname="lz4")))
    hdf5("bitshuffle_lz4_noise", noise(300, "u1"), filters(hdf5plugin.Bitshuffle(cname="lz4")))


def bloscs() -> None:
    """Every compressor and arrangement of Blosc 1, by its own library (numcodecs) and by HDF5's filter."""
    numcodecs.blosc.use_threads = False  # so that blocks are stored in one order only
    compressors = ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]
    for compressor, shuffle in itertools.product(compressors, [0, 1, 2]):
        one = numcodecs.Blosc(compressor, 5, shuffle)
        for dtype, count in [("<f4", 135), ("u1", 143)]:
            data = smooth(count, dtype)
            add(f"blosc_{compressor}_{shuffle}_{dtype}", "blosc", bytes(one.encode(data)), data.tobytes())
        # Two blocks and a rest; split blocks have at least 64 KiB.
        repeated = np.arange(18003 if compressor in {"blosclz", "lz4"} else 5003, dtype="<i8") // 9000 * 3
        blocks = numcodecs.Blosc(compressor, 5, shuffle, blocksize=8192)
        add(f"blosc_{compressor}_{shuffle}_blocks", "blosc", bytes(blocks.encode(repeated)), repeated.tobytes())
        plugin = hdf5plugin.Blosc(compressor, 5, shuffle)
        hdf5(f"blosc_hdf5_{compressor}_{shuffle}", smooth(136, ">i4"), filters(plugin))
    for shuffle in [0, 1, 2]:
        for width in [3, 7, 16, 20]:
            data = smooth(17 if width == 20 else 131, f"V{width}")
            one = numcodecs.Blosc("lz4", 5, shuffle)
            add(f"blosc_width_{width}_{shuffle}", "blosc", bytes(one.encode(data)), data.tobytes())
    data = noise(50, "<f4")
    for level in [0, 9]:
        one = numcodecs.Blosc("lz4", level, 1)
        add(f"blosc_noise_{level}", "blosc", bytes(one.encode(data)), data.tobytes())
    data = smooth(9000, "<f4").round(-2) // 500
    data[5000:5080] = noise(80, "<i2") % 3
    for compressor in ["blosclz", "zlib"]:
        one = numcodecs.Blosc(compressor, 9, 2)
        add(f"blosc_{compressor}_long", "blosc", bytes(one.encode(data)), data.tobytes())
    far = np.concatenate([period := noise(600, "u1"), np.zeros(900, "u1"), period, period[:300], np.zeros(9000, "u1")])
    add("blosclz_far", "blosc", bytes(numcodecs.Blosc("blosclz", 9, 0).encode(far)), far.tobytes())
    far = np.concatenate([period := noise(600, "u1"), np.zeros(9000, "u1"), period, period[:300], np.zeros(900, "u1")])
    add("blosclz_very_far", "blosc", bytes(numcodecs.Blosc("blosclz", 9, 0).encode(far)), far.tobytes())


def blosc2s() -> None:
    for compressor, kind in itertools.product(["blosclz", "lz4", "lz4hc", "zlib", "zstd"], [0, 1, 2, 3]):
        one = hdf5plugin.Blosc2(compressor, 5, kind)
        hdf5(f"blosc2_{compressor}_{kind}", smooth(70, "<f4"), filters(one))
    for shape in [(13, 17), (100, 37), (5, 6, 7), (1, 9), (3, 1, 2, 5), (70, 200)]:
        data = (np.arange(np.prod(shape)) // 70).astype("<i2").reshape(shape)
        for kind in [1, 2]:
            hdf5(f"blosc2_{'x'.join(map(str, shape))}_{kind}", data, filters(hdf5plugin.Blosc2("zstd", 5, kind)))
    for shape in [(131, 257), (7, 50, 90), (3, 4, 5, 6, 70)]:
        data = (np.arange(np.prod(shape)) // 7000).astype("<i4").reshape(shape)
        hdf5(f"blosc2_blocks_{len(shape)}", data, filters(hdf5plugin.Blosc2("lz4", 1, 1)))
    hdf5("blosc2_noise", half_noise(200, "<f4"), filters(hdf5plugin.Blosc2("lz4", 5, 1)))
    hdf5("blosc2_zeros", np.zeros((50, 60), "<f8"), filters(hdf5plugin.Blosc2("lz4", 5, 1)))
    hdf5("blosc2_constant", np.full((50, 60), 2.5, "<f8"), filters(hdf5plugin.Blosc2("lz4", 5, 1)))
    hdf5("blosc2_nan", np.full((50, 60), np.nan, "<f4"), filters(hdf5plugin.Blosc2("lz4", 5, 1)))
    hdf5("blosc2_long", np.arange(300000, dtype="<i8") // 7000, filters(hdf5plugin.Blosc2("zstd", 9, 1)))
    hdf5("blosc2_big_endian", smooth(99, ">f8").reshape(9, 11), filters(hdf5plugin.Blosc2("zlib", 5, 1)))
    hdf5("blosc2_width_3", smooth(99, "S3").reshape(9, 11), filters(hdf5plugin.Blosc2("lz4", 5, 1)))


EC, NN = 4, 32


def szips() -> None:
    dtypes = ["u1", "i1", "<i2", ">u2", "<i4", ">i4", "<f4", ">f4", "<i8", ">f8"]
    for dtype, coding in itertools.product(dtypes, [EC, NN]):
        hdf5(f"szip_{dtype}_{coding}", smooth(130, dtype).clip(0, 90), szip(coding, 8))
    for pixels, coding in itertools.product([2, 4, 10, 16, 32], [EC, NN]):
        hdf5(f"szip_block_{pixels}_{coding}", smooth(101, "<i2"), szip(coding, pixels))
        hdf5(f"szip_lines_{pixels}_{coding}", smooth(37 * 5, "<u2").reshape(5, 37), szip(coding, pixels))
    for coding in [EC, NN]:
        hdf5(f"szip_zeros_{coding}", np.zeros(20000, "<i2"), szip(coding, 16))
        hdf5(f"szip_constant_{coding}", np.full((3, 200), 77, "<i4"), szip(coding, 8))
        hdf5(f"szip_sparse_{coding}", (RANDOM.random(2000) > 0.99).astype("u1"), szip(coding, 8))
        hdf5(f"szip_few_{coding}", (RANDOM.random(700) > 0.7).astype("<u2"), szip(coding, 8))
        hdf5(f"szip_tiny_{coding}", RANDOM.integers(0, 4, 500).astype("u1"), szip(coding, 16))
        hdf5(f"szip_noise_{coding}", half_noise(200, "<i2"), szip(coding, 8))
        hdf5(f"szip_noise_i4_{coding}", half_noise(100, "<i4"), szip(coding, 8))
        hdf5(f"szip_steps_{coding}", np.arange(600).astype("<i4") // 100 * 1000, szip(coding, 32))
        extremes = np.array([0, 65535, 65535, 0, 32767, 32768, 1, 65534], "<u2")
        extremes = np.concatenate([np.tile(extremes, 9), np.zeros(99, "<u2")])
        hdf5(f"szip_extremes_{coding}", extremes, szip(coding, 8))
        for precision in [3, 10, 12, 16]:
            kind = h5t.STD_U16LE.copy() if precision % 2 == 0 else h5t.STD_U8LE.copy()
            kind.set_precision(precision)
            data = RANDOM.integers(0, 1 << precision, 150).astype("<u2" if precision % 2 == 0 else "u1")
            data[60:] = 1
            hdf5(f"szip_precision_{precision}_{coding}", data, szip(coding, 8), kind)
    hdf5("szip_shuffled", smooth(500, "<i4"), lambda p: (p.set_shuffle(), p.set_szip(NN, 8), p.set_fletcher32()))


def szip(coding: int, pixels: int) -> Callable[[h5p.PropDCID], None]:
    return lambda properties: properties.set_szip(coding, pixels)


def nbits() -> None:
    for size, precision, offset in [(1, 3, 2), (1, 8, 0), (2, 12, 3), (4, 17, 5), (4, 32, 0), (8, 33, 7), (8, 1, 63)]:
        for order, sign in itertools.product([h5t.ORDER_LE, h5t.ORDER_BE], [h5t.SGN_NONE, h5t.SGN_2]):
            kind = {1: h5t.STD_I8LE, 2: h5t.STD_I16LE, 4: h5t.STD_I32LE, 8: h5t.STD_I64LE}[size].copy()
            kind.set_order(order)
            kind.set_sign(sign)
            kind.set_precision(precision)
            kind.set_offset(offset)
            name = f"nbit_{size}_{precision}_{offset}_{order}_{sign}"
            hdf5(name, noise(31, f"V{size}"), filters((5, ())), kind)
    kind = h5t.IEEE_F32LE.copy()
    kind.set_fields(26, 20, 6, 7, 13)
    kind.set_offset(7)
    kind.set_precision(20)
    kind.set_size(4)
    kind.set_ebias(31)
    hdf5("nbit_float", noise(40, "V4"), filters((5, ())), kind)
    hdf5("nbit_constant", np.full(500, b"\xff\xff", "V2"), filters((5, ())), narrow())
    compound = h5t.create(h5t.COMPOUND, 23)
    compound.insert(b"i", 1, narrow())
    text = h5t.C_S1.copy()
    text.set_size(3)
    compound.insert(b"s", 4, text)
    compound.insert(b"a", 8, h5t.array_create(narrow(), (2, 2)))
    inner = h5t.create(h5t.COMPOUND, 6)
    inner.insert(b"f", 0, h5t.IEEE_F32BE)
    inner.insert(b"n", 4, narrow())
    compound.insert(b"c", 17, inner)
    hdf5("nbit_compound", noise(20, "V23"), filters((5, ())), compound)
    hdf5("nbit_array", noise(20, "V12"), filters((5, ())), h5t.array_create(narrow(), (2, 3)))
    array = h5t.array_create(h5t.array_create(inner, (2,)), (3,))
    hdf5("nbit_array_of_compounds", noise(9, "V36"), filters((5, ())), array)
    hdf5("nbit_zlib", noise(50, "V2"), filters((5, ()), ZLIB), narrow())


def narrow() -> h5t.TypeID:
    """Eleven bits of sixteen."""
    kind = h5t.STD_U16BE.copy()
    kind.set_precision(11)
    kind.set_offset(2)
    return kind


def scaleoffsets() -> None:
    integers = [order + kind for order in "<>" for kind in ["i1", "u2", "i4", "u8"]] + ["u1", "<i2", ">u4", "<i8"]
    for dtype in integers:
        limits = np.iinfo(dtype)
        step = (limits.max // 50) or 1
        data = (smooth(41, "<i8") % 97 + (limits.min // 2)).astype(dtype)
        fill = data[5]
        hdf5(f"scaleoffset_{dtype}", data, scaled(2, 0))
        hdf5(f"scaleoffset_{dtype}_fill", data, scaled(2, 0, fill))
        hdf5(f"scaleoffset_{dtype}_no_fill", data, scaled(2, 0, None))
        hdf5(f"scaleoffset_{dtype}_constant", np.full(50, step, dtype), scaled(2, 0, None))
        hdf5(f"scaleoffset_{dtype}_whole_range", noise(9, dtype), scaled(2, 0))
        hdf5(f"scaleoffset_{dtype}_few_bits", data, scaled(2, 3))
        hdf5(f"scaleoffset_{dtype}_all_bits", data, scaled(2, 8 * np.dtype(dtype).itemsize))
    for dtype, factor in itertools.product(["<f4", ">f4", "<f8", ">f8"], [0, 1, 3, 5, -2]):
        data = (smooth(31, "<f8") / 7 - 150).astype(dtype)
        hdf5(f"scaleoffset_{dtype}_{factor}", data, scaled(0, factor))
        data[::4] = -999.25
        hdf5(f"scaleoffset_{dtype}_{factor}_fill", data, scaled(0, factor, data[0]))
        hdf5(f"scaleoffset_{dtype}_{factor}_no_fill", data, scaled(0, factor, None))
    for dtype in ["<f4", ">f8"]:
        hdf5(f"scaleoffset_{dtype}_constant", np.full(70, 2.75, dtype), scaled(0, 2, None))
        hdf5(f"scaleoffset_{dtype}_wide", (smooth(30, "<f8") * 1e6).astype(dtype), scaled(0, 9))
    hdf5("scaleoffset_zlib", np.arange(300, dtype="<i4"), lambda p: (p.set_scaleoffset(2, 0), p.set_deflate(5)))


def scaled(kind: int, factor: int, fill: object = 0) -> Callable[[h5p.PropDCID], None]:
    """With the default fill value (0), another one, or none at all, which h5py cannot say."""

    def setup(properties: h5p.PropDCID) -> None:
        if fill is None:
            assert LIBRARY.H5Pset_fill_value(ctypes.c_int64(properties.id), ctypes.c_int64(-1), None) >= 0
        elif not (isinstance(fill, int) and fill == 0):
            properties.set_fill_value(np.array(fill))
        properties.set_filter(6, h5z.FLAG_OPTIONAL, (kind, factor & 0xFFFFFFFF))

    return setup


LIBRARY = ctypes.CDLL(str(next(Path(h5py.__file__).parents[1].glob("h5py.libs/libhdf5-*"))))


def gzip(data: bytes | np.ndarray) -> bytes:
    """Without the time, which would be another one at every run."""
    member = bytes(numcodecs.GZip(6).encode(data))
    return member[:4] + bytes(4) + member[8:]


def zarrs() -> None:
    """numcodecs' framings and calculations."""
    data = smooth(150, "<f4")
    one = gzip(data)
    add("gzip", "gzip", one, data.tobytes())
    two = gzip(data[:70]) + gzip(data[70:])
    add("gzip_members", "gzip", two, data.tobytes())
    add("gzip_members_zlib", "gzip;zlib", zlib.compress(two), data.tobytes())
    add("gzip_twice", "gzip;gzip", gzip(one), data.tobytes())
    add("zlib_numcodecs", "zlib", bytes(numcodecs.Zlib(9).encode(data)), data.tobytes())
    add("lz4_numcodecs", "lz4numcodecs", bytes(numcodecs.LZ4().encode(data)), data.tobytes())
    random = noise(100, "<f4")
    add("lz4_numcodecs_noise", "lz4numcodecs", bytes(numcodecs.LZ4().encode(random)), random.tobytes())
    add("zstd_numcodecs", "zstd", bytes(numcodecs.Zstd(3, checksum=True).encode(data)), data.tobytes())
    add("bz2_numcodecs", "bzip2", bytes(numcodecs.BZ2(1).encode(data)), data.tobytes())
    two = bytes(numcodecs.BZ2(1).encode(data[:99])) + bytes(numcodecs.BZ2(9).encode(data[99:]))
    add("bz2_streams", "bzip2", two, data.tobytes())
    unknown = b"\x28\xb5\x2f\xfd\x00\x58" + (1 | 300 << 3).to_bytes(3, "little") + data.tobytes()[:300]
    add("zstd_unknown_size", "zstd", unknown, data.tobytes()[:300])
    frames = bytes(numcodecs.Zstd(1).encode(data[:99])) + bytes(numcodecs.Zstd(9).encode(data[99:]))
    add("zstd_frames", "zstd", frames, data.tobytes())
    add("zstd_twice", "zstd;zstd", bytes(numcodecs.Zstd(1).encode(numcodecs.Zstd(1).encode(data))), data.tobytes())
    add("crc32c", "crc32c", bytes(numcodecs.CRC32C(location="end").encode(data)), data.tobytes())
    packed = numcodecs.CRC32C(location="end").encode(numcodecs.Zstd(1).encode(data))
    add("zstd_crc32c", "zstd;crc32c", bytes(packed), data.tobytes())
    odd = smooth(50, "<f4")
    add("shuffle_numcodecs", "shuffle:4", bytes(numcodecs.Shuffle(4).encode(odd)), odd.tobytes())
    same = [(dtype, dtype) for dtype in ["<i4", "u1", ">i2", "<f4", "<f8", ">f8"]]
    for decoded, stored in [*same, ("<i8", "<i2"), ("<u2", "<i2"), ("<f8", "<f4"), ("<i2", "i1")]:
        values = smooth(70, "i1").astype(decoded) if stored == "i1" else smooth(70, decoded)
        calculated(f"delta_{decoded}_{stored}", f"delta:{stored},{decoded}", numcodecs.Delta(decoded, stored), values)
    cases = [(273.15, 100, "<f4", "<i2"), (-5, 10, "<f8", "u1"), (0.5, 3, ">f4", ">i4"), (1000, 10, "<f8", "<f4")]
    cases += [(1000, 1, "<i4", "<i2"), (0, 7, "<f4", "<f4"), (0.1, 1e3, "<f4", "<f8")]
    for offset, scale, decoded, stored in cases:
        name = f"fixedscaleoffset_{offset}_{scale}_{decoded}_{stored}"
        one = numcodecs.FixedScaleOffset(offset, scale, decoded, stored)
        values = (smooth(60, "<f8") / 10 + offset).astype(decoded)
        calculated(name, f"fixedscaleoffset:{scale},{offset},{stored},{decoded}", one, values)
    one = numcodecs.Delta("<i4", "<i2")
    deltas = one.encode(smooth(200, "<i4"))
    packed = numcodecs.Zstd(1).encode(numcodecs.Shuffle(2).encode(deltas))
    add("delta_shuffle_zstd", "delta:<i2,<i4;shuffle:2;zstd", bytes(packed), one.decode(deltas).tobytes())


def fits() -> None:
    for vector in fits_vectors.vectors(smooth, noise):
        add(*vector)


def calculated(name: str, chain: str, one: numcodecs.abc.Codec, values: np.ndarray) -> None:
    """A codec that takes numbers."""
    encoded = one.encode(values)
    add(name, chain, encoded.tobytes(), one.decode(encoded).tobytes())


def main() -> None:
    for make in [chains, bytes_of_all_codecs, bitshuffles, bloscs, blosc2s, szips, nbits, scaleoffsets, zarrs, fits]:
        before = len(encoded_chunks), len(index)
        make()
        print(f"{make.__name__}: {len(index) - before[1]} vectors, {len(encoded_chunks) - before[0]} bytes")
    GOLDEN.mkdir(parents=True, exist_ok=True)
    (GOLDEN / "vectors.txt").write_text("\n".join(index) + "\n")
    (GOLDEN / "encoded.bin").write_bytes(encoded_chunks)
    print(f"{len(index)} vectors, {len(encoded_chunks)} bytes")


if __name__ == "__main__":
    main()
