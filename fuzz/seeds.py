"""Make the inputs that fuzzing starts from: small files of every format, golden chunks, and small foreign files.

python seeds.py DIRECTORY [CORPUS ...]
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import hyperslab

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "crates" / "hyperslab-engine" / "tests" / "golden"
MOST_NBYTES = 64 << 10
BETWEEN_FILES = b"\xff/\xff"  # as in src/zarr.rs
SIGNATURES = {b"CDF": "netcdf3", b"SIMPLE": "fits", b"\x0e\x03\x13\x01": "hdf4"}
#: Codecs that are fuzzed together; a chunk belongs to the family of the codec that is decoded first.
FAMILIES = {
    "zlib": "deflate",
    "gzip": "deflate",
    "lz4hdf5": "lz4",
    "lz4numcodecs": "lz4",
    "fletcher32": "checksum",
    "crc32c": "checksum",
    "delta": "numbers",
    "fixedscaleoffset": "numbers",
}
NUMBERS = np.arange(24, dtype="i4").reshape(4, 6)
STEPS = np.arange(600, dtype="i2").reshape(20, 30)


def chunks() -> Iterator[tuple[str, str, bytes]]:
    """Every golden chunk that is small: family, name, input."""
    encoded = (GOLDEN / "encoded.bin").read_bytes()
    for line in (GOLDEN / "vectors.txt").read_text().splitlines():
        name, chain, mask, decoded_nbytes, _, offset, length = line.split("\t")
        if int(decoded_nbytes) > 1 << 18:
            continue
        part = encoded[int(offset) : int(offset) + int(length)]
        names = [codec.split(":")[0] for codec in chain.split(";")]
        family = FAMILIES.get(names[-1], names[-1]) if len(names) == 1 else "chain"
        yield family, name, f"{chain} {mask} {decoded_nbytes}\n".encode() + part


def chunked(file: h5py.File, chunks: tuple[int, ...] = (2, 4), **arguments: Any) -> None:
    """The numbers in small chunks."""
    file.create_dataset("a", data=NUMBERS, chunks=chunks, **arguments)


def attributes(file: h5py.File, count: int, track: bool = False) -> None:
    """A group with attributes."""
    group = file.create_group("g", track_order=track)
    for k in range(count):
        group.attrs[f"attribute_{k}"] = "x" * k


def links(file: h5py.File, count: int, track: bool = False) -> None:
    """A group with links."""
    group = file.create_group("g", track_order=track)
    for k in range(count):
        group[f"link_{k}"] = h5py.SoftLink(f"/there/{k}")


def ragged(file: h5py.File) -> None:
    """Variable-length sequences."""
    array = file.create_dataset("a", (3,), dtype=h5py.vlen_dtype("f4"))
    array[0], array[2] = [1, 2, 3], [4]


def virtual(file: h5py.File) -> None:
    """A virtual array of two sources."""
    layout = h5py.VirtualLayout((4, 6), "i4")
    layout[1:3] = h5py.VirtualSource("other.h5", "b", (2, 6))
    layout[3, ::2] = h5py.VirtualSource(".", "c", (3,))
    file.create_virtual_dataset("a", layout, fillvalue=3)


def compact(file: h5py.File) -> None:
    """An array in its object header."""
    created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    created.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((4, 6))
    array = h5py.h5d.create(file.id, b"a", h5py.h5t.STD_I32LE, space, created)
    array.write(h5py.h5s.ALL, h5py.h5s.ALL, NUMBERS)


def table(file: h5py.File) -> None:
    """A compound type and an enumeration."""
    kinds = [("a", "<i2"), ("b", ">f8"), ("c", "S3"), ("d", "f4", (2, 2)), ("e", "?"), ("f", "c8")]
    file["a"] = np.zeros(3, dtype=kinds)
    file["enumeration"] = np.zeros(2, dtype=h5py.enum_dtype({"one": 1, "two": 2}))


def scales(file: h5py.File) -> None:
    """Dimension scales."""
    file["a"], file["x"], file["y"] = NUMBERS, np.arange(6), np.arange(4)
    file["x"].make_scale("x")
    file["y"].make_scale("y")
    file["a"].dims[0].attach_scale(file["y"])
    file["a"].dims[1].attach_scale(file["x"])


def filtered_links(file: h5py.File) -> None:
    """Links in a deflated heap, one of them too long for its blocks."""
    group = importlib.import_module("made_hdf5").filtered_group(file, "g", fletcher32=True)
    for k in range(20):
        group[f"link_{k}"] = h5py.SoftLink(f"/there/{k}")
    group["long"] = h5py.SoftLink("/there" * 900)


def other_floats(file: h5py.File) -> None:
    """Floats of 20 bits, n-bit encoded."""
    made = importlib.import_module("made_hdf5")
    made.write_floats(file, "a", made.float_type((6, 13, 0), 7, 4, "<", 31), np.arange(12.0), (5,))


#: One structure of HDF5 each, as small as it can be.
STRUCTURES: dict[str, Callable[[h5py.File], object]] = {
    "contiguous": lambda file: file.create_dataset("a", data=NUMBERS),
    "compact": compact,
    "unwritten": lambda file: file.create_dataset("a", (4, 6), "f8", fillvalue=2.5),
    "scalar": lambda file: file.create_dataset("a", data=3.5),
    "null": lambda file: file.create_dataset("a", data=h5py.Empty("f4")),
    "single": lambda file: chunked(file, (4, 6), compression="lzf"),
    "fixed": chunked,
    "deflate": lambda file: chunked(file, compression="gzip", shuffle=True, fletcher32=True),
    "fixed_pages": lambda file: file.create_dataset("a", (1100,), "u1", chunks=(1,), fillvalue=1),
    "edges": lambda file: chunked(file, (3, 5), scaleoffset=0),
    "one_unlimited": lambda file: chunked(file, maxshape=(4, None)),
    "extensible": lambda file: file.create_dataset("a", data=STEPS, chunks=(5, 2), maxshape=(20, None)),
    "two_unlimited": lambda file: chunked(file, maxshape=(None, None)),
    "deflate_unlimited": lambda file: chunked(file, maxshape=(None, None), compression="gzip"),
    "many_chunks": lambda file: file.create_dataset("a", data=STEPS, chunks=(2, 3), maxshape=(None, None)),
    "text": lambda file: file.create_dataset("a", data=["hello", "", "wörld"], dtype=h5py.string_dtype()),
    "fixed_text": lambda file: file.create_dataset("a", data=np.array([b"ab", b"cde"])),
    "ragged": ragged,
    "table": table,
    "external": lambda file: file.create_dataset("a", (4, 6), "i4", external=[("x", 0, 48), ("y", 4, 48)]),
    "virtual": virtual,
    "few_attributes": lambda file: attributes(file, 3),
    "dense_attributes": lambda file: attributes(file, 12, True),
    "few_links": lambda file: links(file, 3),
    "dense_links": lambda file: links(file, 20, True),
    "filtered_links": filtered_links,
    "other_floats": other_floats,
    "reference": lambda file: file.create_dataset("a", data=file.create_group("g").ref),
    "type": lambda file: file.__setitem__("t", np.dtype("f8")),
    "scales": scales,
    "everything": lambda file: everything(file),
}


def everything(file: h5py.File) -> None:
    """All of them in one file."""
    for name, make in STRUCTURES.items():
        if name != "everything":
            make(file.create_group(name))


def hdf5_files(folder: Path) -> Iterator[Path]:
    """Every structure in the oldest and in the newest format."""
    for libver in ("earliest", "v110", "latest"):
        for name, make in STRUCTURES.items():
            path = folder / f"{libver}_{name}.h5"
            try:
                with h5py.File(path, "w", libver=(libver, "latest")) as file:
                    make(file)
            except (ValueError, RuntimeError, TypeError) as error:  # not every structure has an old form
                print(f"{path.name}: {error}", file=sys.stderr)
                continue
            yield path


def commit_versions(versions: Any) -> None:
    """Three versions: chunks shared, changed, cut at the end, missing."""
    with versions.stage_version("v0") as version:
        version.create_dataset("x", data=NUMBERS.reshape(-1), chunks=(5,), compression="gzip")
        version.create_dataset("g/y", data=STEPS[:7, :9], chunks=(3, 9), fillvalue=2)
    with versions.stage_version("v1") as version:
        version["x"].resize((33,))
        version["x"][7] = -1
        version["g/y"][:3] = 2
        version.create_dataset("words", data=["a", "", "wörld"], dtype=h5py.string_dtype(), chunks=(2,))
    with versions.stage_version("v2") as version:
        version["x"].resize((12,))
        version["x"].attrs["note"] = "short"
        del version["words"]


def version_files(folder: Path) -> Iterator[Path]:
    """Files of versions by both libraries, in old and new encodings."""
    from versioned_hdf5 import VersionedHDF5File

    for libver in ("earliest", "latest"):
        for kind in (hyperslab.VersionedFile, VersionedHDF5File):
            path = folder / f"{libver}_{kind.__name__}.h5"
            with h5py.File(path, "w", libver=(libver, "latest")) as file:
                commit_versions(kind(file))
            yield path
    path = folder / "own.h5"
    with hyperslab.VersionedFile(path, "w") as own:
        commit_versions(own)
    yield path


def mappings() -> Iterator[tuple[str, bytes]]:
    """Blocks of mappings, each behind a line with the shape of the array and of its chunks."""
    for shape, chunk_shape in [((10,), (3,)), ((7, 5), (2, 3)), ((4, 3, 2), (2, 3, 1)), ((300,), (1,))]:
        places = np.arange(np.prod([-(-length // chunk) for length, chunk in zip(shape, chunk_shape, strict=True)]))
        for name, chosen in (("all", places), ("some", np.where(places % 3, places[::-1], -1)), ("one", places * 0)):
            block = hyperslab._core.mappings_block("/_version_data/x/raw_data", shape, chunk_shape, chosen)
            line = " ".join(",".join(map(str, lengths)) for lengths in (shape, chunk_shape))
            yield f"{name} {line}", f"{line}\n".encode() + block.tobytes()


def of_versions(folder: Path) -> Iterator[tuple[str, str, bytes]]:
    """All of that: target, name, input."""
    for path in version_files(folder):
        yield from ((target, path.name, path.read_bytes()) for target in ("versions", "hdf5", "read"))
    yield from (("mappings", *one) for one in mappings())


def small_fits(folder: Path) -> Iterator[Path]:
    """An image, and a binary and an ASCII table of a few values."""
    import fitsio

    for name, content in {
        "image": np.arange(6, dtype="i2").reshape(2, 3),
        "float": np.arange(6, dtype="f8"),
        "table": np.zeros(2, [("a", "i4"), ("b", "f8", (2, 3)), ("s", "S9"), ("l", "?")]),
    }.items():
        path = folder / f"{name}.fits"
        with fitsio.FITS(path, "rw") as file:
            file.write(content)
        yield path
    path = folder / "ascii.fits"
    with fitsio.FITS(path, "rw") as file:
        file.write(np.zeros(2, [("a", "i4"), ("b", "f8"), ("s", "S9")]), table_type="ascii")
    yield path


def small_hdf4(folder: Path) -> Iterator[Path]:
    """One array each: plain, deflated, unlimited, filled."""
    from pyhdf.SD import SD, SDC

    for name in ("plain", "deflated", "grown", "filled"):
        path = folder / f"{name}.hdf"
        file = SD(str(path), SDC.WRITE | SDC.CREATE)
        array = file.create("a", SDC.INT32, (SDC.UNLIMITED, 6) if name == "grown" else (4, 6))
        array.units = "m"
        if name == "deflated":
            array.setcompress(SDC.COMP_DEFLATE, 6)
        if name == "filled":
            array.setfillvalue(7)
        else:
            array[:] = NUMBERS
        array.endaccess()
        file.end()
        yield path


def zarr_input(folder: Path) -> bytes:
    """The files of a folder as one input."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return BETWEEN_FILES.join(f"{path.relative_to(folder)}\n".encode() + path.read_bytes() for path in paths)


def zarr_values() -> Iterator[tuple[str, bytes]]:
    """Arrays of text, bytes, sequences and JSON of any length, a file each for the document and two chunks."""
    import json

    import numcodecs

    words = {"vlen-utf8": ["a", "\u00fc"], "vlen-bytes": [b"a", b""], "json2": [1, {"a": ["b"]}]}
    words["vlen-array"] = [np.arange(2, dtype="<i4"), np.arange(0, dtype="<i4")]
    for codec, values in words.items():
        array = np.empty(2, object)
        array[:] = values
        described = {"id": codec, "dtype": "<i4"} if codec == "vlen-array" else {"id": codec}
        document = {"zarr_format": 2, "shape": [3], "chunks": [2], "dtype": "|O", "fill_value": None, "order": "C"}
        document |= {"filters": [described], "compressor": None}
        chunk = bytes(numcodecs.get_codec(dict(described)).encode(array))
        files = [b".zarray\n" + json.dumps(document).encode(), b"0\n" + chunk, b"1\n" + chunk]
        yield f"values_{codec}", BETWEEN_FILES.join(files)


def zarr_inputs(store: Path) -> Iterator[tuple[str, bytes]]:
    """Every array of a folder, as a folder of its own."""
    for document in sorted([*store.rglob(".zarray"), *store.rglob("zarr.json"), *store.rglob(".zmetadata")]):
        whole = document.parent == store
        content = document.read_bytes() if whole else zarr_input(document.parent)
        name = f"{store.stem}_{document.parent.name}_{document.name}"
        yield name, f"{document.name}\n".encode() + content if whole else content


def files(folder: Path, corpora: list[Path]) -> Iterator[Path]:
    """Small files of our own making, then foreign ones."""
    yield from hdf5_files(folder)
    yield from small_fits(folder)
    yield from small_hdf4(folder)
    for corpus in corpora:
        yield from sorted(path for path in corpus.rglob("*") if path.is_file())


def format_of(content: bytes) -> str | None:
    """Which parser wants it."""
    if b"\x89HDF\r\n\x1a\n" in (content[:8], content[512:520]):
        return "hdf5"
    return next((name for signature, name in SIGNATURES.items() if content.startswith(signature)), None)


def main() -> None:
    """Write one folder for each target."""
    directory = Path(sys.argv[1])

    def put(target: str, name: str, content: bytes) -> None:
        if len(content) <= MOST_NBYTES:
            (directory / target).mkdir(parents=True, exist_ok=True)
            (directory / target / name).write_bytes(content)

    for family, name, content in chunks():
        put(family, name, content)
    sys.path[:0] = [str(ROOT / "tests" / "engine"), str(ROOT / "tests" / "references")]
    formats_made = importlib.import_module("formats_made")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made = list(formats_made.make(folder))
        plain = [path for kind, path in made if kind != "zarr"]
        for number, path in enumerate([*plain, *files(folder, [Path(text) for text in sys.argv[2:]])]):
            content = path.read_bytes() if path.stat().st_size <= MOST_NBYTES else b""
            if kind := format_of(content):
                put(kind, f"{number}_{path.name}", content)
                put("read", f"{number}_{path.name}", content)
        for target, name, content in of_versions(folder):
            put(target, name, content)
        for number, (_, path) in enumerate(made):
            references = folder / f"{number}.hs"
            hyperslab.index(path).save(references)
            put("references", references.name, references.read_bytes())
        importlib.import_module("test_dmrpp").make(folder / "documented.h5")
        document = importlib.import_module("dmrpp_writer").document(folder / "documented.h5")
        put("dmrpp", "documented.dmrpp", document.encode())
        folders = [path for kind, path in made if kind == "zarr"]
        for name, content in [*zarr_values(), *(one for path in folders for one in zarr_inputs(path))]:
            put("zarr", name, content)


if __name__ == "__main__":
    main()
