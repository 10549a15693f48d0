"""Checks the parsers of NetCDF-3, FITS, Zarr and HDF4 against other libraries, by values.

The parsers' example ``arrays`` prints where each chunk is; here the bytes at those addresses are read and decoded, and
compared with what netCDF4, fitsio, zarr and pyhdf give. Every array is equal, unsupported by name, wrong, or missing.

    python tests/engine/compare_formats.py ARRAYS_BINARY CORPUS_FOLDER [--list]
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import subprocess
import tempfile
import zlib
from pathlib import Path
from typing import Any

import formats_made
import numpy as np

Outcome = collections.Counter


def parse(binary: Path, name: str, path: Path) -> list[dict[str, Any]] | str:
    """Lines of the example; a word where it ended badly."""
    try:
        run = subprocess.run([binary, name, path], capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return "hang"
    if run.returncode != 0:
        return "crash " + run.stderr.strip()[-300:]
    return [json.loads(line) for line in run.stdout.splitlines()]


def dtype_of(described: Any) -> np.dtype:
    """A NumPy dtype from the example's words for an element."""
    if isinstance(described, str):
        return np.dtype(described)
    if "of" in described:
        return np.dtype((dtype_of(described["of"]), tuple(described["shape"])))
    names, offsets, formats = [], [], []
    for name, offset, element in described["fields"]:
        names.append(name)
        offsets.append(offset)
        formats.append(dtype_of(element))
    nbytes = described["nbytes"]
    return np.dtype({"names": names, "offsets": offsets, "formats": formats, "itemsize": nbytes})


def decode(data: bytes, codecs: list[list[Any]], shape: list[int], dtype: np.dtype) -> np.ndarray:
    """A chunk's elements from its stored bytes."""
    order = None
    for name, *arguments in reversed(codecs):
        if name == "transpose":
            order = arguments[0]
        else:
            data = decode_bytes(data, name, arguments)
    count = int(np.prod(shape, dtype=np.int64))
    flat = np.frombuffer(data, dtype=np.dtype((np.void, dtype.itemsize)), count=count)
    if order is None:
        return flat.reshape(shape)
    return flat.reshape([shape[axis] for axis in order]).transpose(np.argsort(order))


def decode_bytes(data: bytes, name: str, arguments: list[Any]) -> bytes:
    """Undo one codec."""
    import numcodecs

    if name == "deflate":
        return zlib.decompressobj().decompress(data)
    if name == "gzip":
        return zlib.decompress(data, 31)
    if name == "crc32c":
        return data[:-4]
    if name == "delta":
        stored, decoded = arguments
        codec = numcodecs.Delta(dtype=decoded, astype=stored)
        return codec.decode(np.frombuffer(data, stored)).tobytes()
    if name == "fixedscaleoffset":
        scale, offset, stored, decoded = arguments
        codec = numcodecs.FixedScaleOffset(offset=offset, scale=scale, dtype=decoded, astype=stored)
        return codec.decode(np.frombuffer(data, stored)).tobytes()
    if name == "shuffle":
        return bytes(numcodecs.Shuffle(arguments[0]).decode(data))
    known = {"zstd": "zstd", "blosc": "blosc", "bzip2": "bz2", "lz4_numcodecs": "lz4"}
    if name not in known:
        raise NotImplementedError(f"unsupported: codec {name} {arguments}")
    return bytes(numcodecs.get_codec({"id": known[name]}).decode(data))


def read(line: dict[str, Any], root: Path, files: list[str]) -> np.ndarray:
    """The whole array, from its chunks' addresses."""
    dtype, shape = dtype_of(line["dtype"]), line["shape"]
    raw = np.dtype((np.void, dtype.itemsize))

    def filled(fill: str | None) -> np.ndarray:
        one = bytes(dtype.itemsize) if fill in (None, "zero") else bytes.fromhex(fill)
        return np.frombuffer(one, raw)[0]

    out = np.full(shape, filled(line["fill"]), raw)
    if isinstance(line["segments"], dict):
        raise NotImplementedError(line["segments"]["unreadable"])
    with contextlib.ExitStack() as stack:
        opened: dict[int, Any] = {}
        for segment in line["segments"]:
            out[...] = filled(segment["fill"])
            for index, data in stored(segment, root, files, opened, stack):
                place_chunk(out, segment, index, data, dtype)
    if dtype.subdtype:
        return np.frombuffer(out.tobytes(), dtype.subdtype[0]).reshape((*shape, *dtype.subdtype[1]))
    return np.frombuffer(out.tobytes(), dtype).reshape(shape)


def stored(segment, root, files, opened, stack):
    """Index and stored bytes of each chunk."""
    for index, file, offset, length in segment["chunks"]:
        if file not in opened:
            path = root if file == 0 else (root if root.is_dir() else root.parent) / files[file - 1]
            if len(opened) > 100:
                opened.clear()
            opened[file] = stack.enter_context(path.open("rb"))
        opened[file].seek(offset)
        data = opened[file].read(length)
        if len(data) != length:
            raise NotImplementedError("damaged: the file ends inside a chunk: a named error when it is read")
        yield index, data
    for index, data in segment["inline"]:
        yield index, bytes.fromhex(data)


def place_chunk(out, segment, index, data, dtype):
    """Put a decoded chunk where it belongs; edge chunks are stored whole."""
    chunk_shape = segment["chunk_shape"]
    values = decode(data, segment["codecs"], chunk_shape, dtype)
    grid = [-(-length // chunk) for length, chunk in zip(out.shape, chunk_shape, strict=True)]
    start = np.multiply(np.unravel_index(index, grid), chunk_shape) if grid else ()
    target = tuple(slice(int(a), int(a) + c) for a, c in zip(start, chunk_shape, strict=True))
    valid = np.minimum(np.subtract(out.shape, start), chunk_shape) if grid else ()
    out[target or ...] = values[tuple(slice(0, int(length)) for length in valid) or ...]


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    """Equal in shape and values; NaN is NaN; text and bytes by their bytes."""
    expected = np.ma.getdata(np.asarray(expected))
    if found.shape != expected.shape:
        return False
    if found.dtype.kind in "SV" or expected.dtype.kind in "SUOV":
        if found.dtype.names:
            return all(same(found[name], expected[name]) for name in found.dtype.names)
        if expected.dtype.kind in "Ui":
            return np.array_equal(found.astype(expected.dtype), expected)
        return found.tobytes() == expected.tobytes() or np.array_equal(found, expected.astype(found.dtype))
    if found.dtype.kind in "mM":  # not-a-time is not equal to itself
        found, expected = found.astype("i8"), expected.astype(found.dtype).astype("i8")
    return np.array_equal(found, expected, equal_nan=found.dtype.kind in "fc")


def netcdf_oracle(path: Path):
    """Names and values by netCDF4."""
    import netCDF4

    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        for name, variable in file.variables.items():
            variable.set_auto_chartostring(False)
            yield name, lambda variable=variable: variable[...]


def fits_oracle(path: Path):
    """Names and values by fitsio, which scales; names as the parser gives them."""
    import fitsio

    names = set()
    with fitsio.FITS(path) as file:
        for number, hdu in enumerate(file):
            header = hdu.read_header()
            plain = f"hdu{number}" if number else "primary"
            name = str(header.get("EXTNAME") or "").strip().replace("/", "_")
            if name in names:
                name = f"{name}_{header.get('EXTVER', 1)}"
            name = name or plain
            names.add(name)
            if hdu.has_data() if hasattr(hdu, "has_data") else True:
                yield name, lambda hdu=hdu: hdu.read(), header


def zarr_oracle(path: Path):
    """Paths and values by zarr."""
    import zarr

    def walk(group, prefix):
        for name, node in group.members():
            if isinstance(node, zarr.Group):
                yield from walk(node, f"{prefix}{name}/")
            else:
                yield f"{prefix}{name}", lambda node=node: node[...]

    root = zarr.open(path, mode="r")
    if isinstance(root, zarr.Array):
        yield "", lambda: root[...]
    else:
        yield from walk(root, "")


def hdf4_oracle(path: Path):
    """Names and values by pyhdf."""
    from pyhdf.SD import SD, SDC

    file = SD(str(path), SDC.READ)
    seen: collections.Counter[str] = collections.Counter()
    for number in range(file.info()[0]):
        dataset = file.select(number)
        name, rank, shape, *_ = dataset.info()
        shape = [shape] if rank == 1 else list(shape)
        name = name.rstrip("\0").replace("/", "_")
        seen[name] += 1
        name = name if seen[name] == 1 else f"{name}_{seen[name]}"

        def values(dataset=dataset, shape=shape):
            if 0 in shape:
                return np.zeros(shape)
            return np.asarray(dataset.get()).reshape(shape)

        yield name, values


ORACLES = {"netcdf3": netcdf_oracle, "fits": fits_oracle, "zarr": zarr_oracle, "hdf4": hdf4_oracle}


def unscaled(found: np.ndarray, header: Any) -> np.ndarray:
    """What fitsio makes of stored values: scaled ones."""
    scale, zero = header.get("BSCALE", 1), header.get("BZERO", 0)
    if found.dtype.names or (scale == 1 and zero == 0) or (found.dtype.kind == "f" and scale == 1 and not zero):
        return found
    if found.dtype.kind == "i" and scale == 1 and zero == 2 ** (8 * found.dtype.itemsize - 1):
        return found.astype(f"u{found.dtype.itemsize}") + np.array(int(zero), f"u{found.dtype.itemsize}")
    return found * scale + zero


def table_same(found: np.ndarray, expected: np.ndarray, header: Any) -> str:
    """Compare a FITS table column by column; scaled columns are compared scaled."""
    for name in found.dtype.names or ():
        match = [other for other in expected.dtype.names or () if other.lower() == name.lower()]
        if not match:
            return f"wrong: fitsio has no column {name}"
        values, other = found[name], expected[match[0]]
        number = next((n for n in range(1, 1000) if str(header.get(f"TTYPE{n}", "")).strip() == name), 0)
        if "X" in str(header.get(f"TFORM{number}", "")):
            continue  # fitsio unpacks the bits, we do not
        scale, zero = header.get(f"TSCAL{number}", 1), header.get(f"TZERO{number}", 0)
        if values.dtype.kind == "S" and other.dtype.kind in "iuf":
            numbers = [float(text.replace(b"D", b"E")) if text.strip(b" *") else 0.0 for text in values.ravel()]
            fits = np.abs(numbers) < 2.0**63  # fitsio lets larger ones overflow
            good = np.allclose(np.array(numbers)[fits], other.ravel()[fits], equal_nan=True)
        elif values.dtype.kind == "S":
            good = np.array_equal(np.char.rstrip(values), np.char.rstrip(other.astype("S")))
        elif other.dtype.kind == "b":
            good = np.array_equal(values == ord("T"), other.reshape(values.shape))
        elif scale != 1 or zero != 0:
            good = np.allclose(values * float(scale) + float(zero), other.reshape(values.shape), equal_nan=True)
        else:
            other = other.reshape(values.shape) if other.size == values.size else other
            good = np.array_equal(values, other, equal_nan=values.dtype.kind in "fc")
        if not good:
            return f"wrong: column {name}"
    return "equal"


def verdict(name: str, line: dict[str, Any] | None, path: Path, files: list[str], expected, header) -> str:
    """What became of one array."""
    if line is None:
        return "missing"
    if "unreadable" in line:
        return str(line["unreadable"])
    try:
        found = read(line, path, files)
    except NotImplementedError as reason:
        return str(reason)
    try:
        values = expected()
    except Exception as error:
        return f"oracle failed: {error}"[:100]
    if header is not None and found.dtype.names:
        return table_same(found, values, header)
    if header is not None:
        found = unscaled(found, header)
        if values is not None and np.asarray(values).dtype.kind == "f" and found.dtype.kind == "f":
            return "equal" if np.allclose(found, values, equal_nan=True, rtol=1e-6) else "wrong"
    if values is None:
        return "oracle failed: nothing"
    good = same(found, np.asarray(values))
    return "equal" if good else f"wrong: {found.dtype}{found.shape} {np.asarray(values).dtype}{np.shape(values)}"


def compare(binary: Path, name: str, path: Path) -> list[tuple[str, str]]:
    """Outcomes of all arrays of a file, as the oracle lists them."""
    lines = parse(binary, name, path)
    if isinstance(lines, str):
        return [("", lines)]
    fatal = lines[0].get("fatal")
    by_path = {line["path"].strip("/"): line for line in lines[1:]}
    outcomes = []
    try:
        for array, expected, *header in ORACLES[name](path):
            files = [] if fatal else lines[0]["files"]
            if fatal:
                outcomes.append((array, f"file error: {fatal}"))
                continue
            line = by_path.get(array)
            outcomes.append((array, verdict(array, line, path, files, expected, header[0] if header else None)))
    except Exception as error:
        outcomes.append(("", f"oracle failed: {error}"[:120] + (f" (we: {fatal})" if fatal else "")))
    return outcomes


def corpus(folder: Path):
    """Files of the corpus by format, from their first bytes."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        start = path.open("rb").read(9)
        if start[:4] in (b"CDF\1", b"CDF\2", b"CDF\5"):
            yield "netcdf3", path
        elif start[:4] == b"\x0e\x03\x13\x01":
            yield "hdf4", path
        elif start == b"SIMPLE  =":
            yield "fits", path


def main() -> None:
    """Compare everything, print a table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("binary", type=Path)
    arguments.add_argument("corpus", type=Path)
    arguments.add_argument("--list", action="store_true", help="print every array that is not equal")
    options = arguments.parse_args()
    totals: dict[tuple[str, str], Outcome] = collections.defaultdict(Outcome)
    with tempfile.TemporaryDirectory() as folder:
        made = [("made", *item) for item in formats_made.make(Path(folder))]
        found = [("corpus", *item) for item in corpus(options.corpus)]
        for origin, name, path in made + found:
            for array, outcome in compare(options.binary, name, path):
                totals[name, origin][outcome.split(":")[0].split(" ")[0]] += 1
                if options.list and outcome != "equal":
                    print(name, path.name, array, "->", outcome)
    for (name, origin), counts in sorted(totals.items()):
        print(f"{name:8} {origin:7}", dict(counts.most_common()))


if __name__ == "__main__":
    main()
