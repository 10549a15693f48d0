"""Compare what our parser says of HDF5 files with what h5py says: run by hand.

    python tests/engine/compare_structure.py DUMP DIRECTORY_OR_FILE...

DUMP is the example binary `dump` of hyperslab-parsers. Each file is compared in a process of its own, because libhdf5
may crash on damaged files. Compared: objects, attribute names, shapes, widths of elements, filters, chunk counts and
stored bytes. Chunk counts of extensible arrays whose unlimited axis is not the first are left out: libhdf5 2.0's own
query is wrong for them.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECONDS = 30
KIND_VLEN = 9
FILTERS = {
    1: "deflate",
    2: "shuffle",
    3: "fletcher32",
    4: "szip",
    5: "nbit",
    6: "scaleoffset",
    307: "bzip2",
    32000: "lzf",
    32001: "blosc",
    32004: "lz4",
    32008: "bitshuffle",
    32015: "zstd",
    32026: "blosc2",
}


def dumped(binary: str, path: Path) -> list[dict[str, Any]]:
    """The lines that the binary prints for a file."""
    run = subprocess.run([binary, str(path)], capture_output=True, timeout=SECONDS, check=True)
    return [json.loads(line) for line in run.stdout.decode().splitlines()]


def objects(file: Any) -> Iterator[tuple[str, Any]]:
    """Every object that hard links lead to, once."""
    import h5py

    seen, queue = set(), deque([("/", file["/"])])
    while queue:
        path, item = queue.popleft()
        address = h5py.h5o.get_info(item.id).addr
        if address in seen:
            continue
        seen.add(address)
        yield path, item
        if isinstance(item, h5py.Group):
            names = [name for name in item if isinstance(item.get(name, getlink=True), h5py.HardLink)]
            for name in names:
                with contextlib.suppress(KeyError):  # libhdf5 cannot open it itself
                    queue.append((f"{path.rstrip('/')}/{name}", item[name]))


def holds_vlen(kind: Any) -> bool:
    """Whether an element of this type is or holds a pointer: its width in memory is not that in the file."""
    return bool(kind.detect_class(KIND_VLEN) or (hasattr(kind, "is_variable_str") and kind.is_variable_str()))


def compare_array(item: Any, line: dict[str, Any]) -> Iterator[str]:
    """What differs between an array of h5py's and ours."""
    import h5py

    shape = None if item.shape is None else list(item.shape)
    if shape != line["shape"]:
        yield f"shape {shape} is {line['shape']}"
    kind = item.id.get_type()
    if not holds_vlen(kind) and "VlenString" not in line["element"] and kind.get_size() != line["nbytes"]:
        yield f"width {kind.get_size()} is {line['nbytes']}"
    properties = item.id.get_create_plist()
    filters = [properties.get_filter(number)[0] for number in range(properties.get_nfilters())]
    ours = line["codecs"][: len(filters)]
    pairs = zip(filters, ours, strict=False)
    if line["error"] is None and any(FILTERS.get(number, name) != name for number, name in pairs):
        yield f"filters {filters} are {ours}"
    layout = properties.get_layout()
    swizzled = item.maxshape is not None and None in item.maxshape[1:]
    if line["error"] is not None:
        yield f"error: {line['error']}"
    elif layout == h5py.h5d.CHUNKED and item.shape is not None and not swizzled:
        if item.id.get_num_chunks() != line["chunks"]:
            yield f"chunks {item.id.get_num_chunks()} are {line['chunks']}"
        if item.id.get_storage_size() != line["stored"]:
            yield f"stored bytes {item.id.get_storage_size()} are {line['stored']}"
    elif layout == h5py.h5d.VIRTUAL and len(item.virtual_sources()) != line["virtual"]:
        yield f"virtual sources {len(item.virtual_sources())} are {line['virtual']}"


def compare_attributes(item: Any, line: dict[str, Any]) -> Iterator[str]:
    """What differs between the names of attributes."""
    failed = [entry for entry in line["attributes"] if isinstance(entry, list)]
    for name, problem in failed:
        yield f"attribute {name!r}: {problem}"
    ours = sorted(entry[0] if isinstance(entry, list) else entry for entry in line["attributes"])
    theirs = sorted(item.attrs)
    if ours != theirs:
        yield f"attributes {theirs} are {ours}"
    for name in sorted(set(theirs) & set(line["values"])):
        expected, found = attribute_value(item, name), line["values"][name]
        if expected is not None and expected[0] is None:
            expected, found = expected[1], [bytes.fromhex(text).split(b"\\0")[0] for text in found[1]]
        if expected is not None and expected != found:
            yield f"attribute {name!r}: {str(expected)[:90]} is {str(found)[:90]}"


def attribute_value(item: Any, name: str) -> list[Any] | None:
    """An attribute's bytes as stored, and its variable-length strings; nothing where h5py cannot say."""
    import h5py
    import numpy as np

    attribute = h5py.h5a.open(item.id, name.encode())
    kind = attribute.get_type()
    if attribute.get_space().get_simple_extent_type() == h5py.h5s.NULL:
        return None
    if kind.get_class() == h5py.h5t.STRING and kind.is_variable_str():
        try:
            strings = np.asarray(item.attrs[name], dtype=object).ravel()
        except OSError:  # libhdf5 cannot read it itself
            return None
        return [None, [text.encode("utf-8", "surrogateescape") for text in strings]]
    if holds_vlen(kind) or kind.get_class() in (h5py.h5t.REFERENCE, h5py.h5t.VLEN):
        return None
    raw = np.zeros((*attribute.shape, kind.get_size()), dtype="u1")
    try:
        attribute.read(raw, mtype=kind)
    except OSError:  # libhdf5 cannot read it itself
        return None
    return [raw.tobytes().hex(), []]


def compare(binary: str, path: Path) -> Iterator[str]:
    """What differs between a file as h5py and as we read it."""
    import h5py

    lines = dumped(binary, path)
    whole = [line["error"] for line in lines if set(line) == {"error"}]
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        yield f"refused: {str(error)[:90]} | ours: {whole or 'reads'}"
        return
    if whole:
        yield f"whole file: {whole[0]}"
        return
    ours = {line.get("group") or line.get("array"): line for line in lines if "group" in line or "array" in line}
    known = {}
    for name, line in ours.items():
        with contextlib.suppress(KeyError):
            known[h5py.h5o.get_info(file[name].id).addr] = line
    for name, item in objects(file):
        if isinstance(item, h5py.Datatype):
            continue
        line = known.pop(h5py.h5o.get_info(item.id).addr, None)
        if line is None:
            links = [line["to"] for line in lines if line.get("link") == name]
            yield f"{name} is missing {links}"
            continue
        yield from (f"{name}: {problem}" for problem in compare_attributes(item, line))
        if isinstance(item, h5py.Dataset):
            yield from (f"{name}: {problem}" for problem in compare_array(item, line))
    yield from (f"{line.get('group') or line.get('array')} is not h5py's" for line in known.values())


def files(arguments: list[str]) -> Iterator[Path]:
    """All HDF5 files among the arguments and below."""
    for argument in map(Path, arguments):
        for path in sorted(argument.rglob("*")) if argument.is_dir() else [argument]:
            if path.is_file() and any(read_at(path, place) == b"\x89HDF\r\n\x1a\n" for place in (0, 512, 1024, 2048)):
                yield path


def read_at(path: Path, place: int) -> bytes:
    """Eight bytes of a file."""
    with path.open("rb") as file:
        file.seek(place)
        return file.read(8)


def main() -> None:
    """One file where asked for one, else each file in a process of its own."""
    binary, *arguments = sys.argv[1:]
    if arguments[0] == "--one":
        for problem in compare(binary, Path(arguments[1])):
            print(problem)
        return
    outcomes: Counter[str] = Counter()
    for path in files(arguments):
        command = [sys.executable, __file__, binary, "--one", str(path)]
        try:
            run = subprocess.run(command, capture_output=True, timeout=2 * SECONDS, check=False)
            problems = run.stdout.decode().splitlines()
            if run.returncode:
                problems.append(f"exit {run.returncode}: {run.stderr.decode().strip()[-200:]}")
        except subprocess.TimeoutExpired:
            problems = ["timeout"]
        outcomes["equal" if not problems else "different"] += 1
        for problem in problems:
            print(f"{path.parent.name}/{path.name}: {problem}"[:300])
    print(dict(outcomes))


if __name__ == "__main__":
    main()
