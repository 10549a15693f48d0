"""Arrays to store, where to store them, and whether the result is what a format promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hyperslab.errors import Refused
from hyperslab.formats.contract import ArrayHandle, ArraySpec, Format, Need
from hyperslab.storage.chain import Codec, CodecChain
from hyperslab.storage.layout import StoredLayout

SHAPE = (12, 10)
CHUNK, SHARD = (4, 5), (8, 10)
TABLE = np.dtype([("a", "f8"), ("b", "i4"), ("c", "f4"), ("d", "i2")])
NO_NEED = Need()


def values(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Numbers that a wrong type, byte order or text format would change."""
    random = np.random.default_rng(7)
    native = dtype.newbyteorder("=")
    if native.kind == "f":
        limits: Any = np.finfo(native)
        out = (random.standard_normal(shape) * 10.0 ** random.integers(-30, 30, shape)).astype(native)
        special = [np.nan, np.inf, -np.inf, -0.0, limits.max, limits.tiny, limits.smallest_subnormal, 0.1]
    else:
        limits = np.iinfo(native)
        out = random.integers(limits.min, limits.max, shape, native, endpoint=True)
        special = [limits.min, limits.max, 0]
    flat = out.reshape(-1)
    flat[: len(special)] = np.array(special, native)[: flat.size]
    return out


def table(row_count: int) -> np.ndarray:
    """Rows of a compound type."""
    out = np.empty(row_count, TABLE)
    for name in TABLE.names or ():
        out[name] = values((row_count,), TABLE[name])[::-1]
    return out


def sample(spec: ArraySpec) -> np.ndarray:
    """Data for an array."""
    return table(spec.shape[0]) if spec.dtype.fields else values(spec.shape, spec.dtype)


def same(contender: Format, got: np.ndarray, expected: np.ndarray) -> None:
    """What was read equals what was written, or the zeros of a format that is not `exact`."""
    assert type(got) is np.ndarray, f"{type(got)} is not a plain array"
    assert got.shape == expected.shape
    assert got.dtype.newbyteorder("=") == expected.dtype.newbyteorder("=")
    if contender.capabilities.exact:
        assert got.astype(expected.dtype).tobytes() == expected.tobytes()
    else:
        assert contender.capabilities.notes, "a format that is not exact says so in its notes"
        assert got.tobytes() == bytes(expected.nbytes)


def path_of(contender: Format, directory: Path, stem: object = "file") -> Path:
    """The path where a format would store a file."""
    return directory / f"{stem}{contender.extension}"


def store(contender: Format, path: Path, spec: ArraySpec, data: np.ndarray) -> None:
    """Write one array "a" into a new file."""
    with closing(contender.create(path)) as file:
        file.create_array("a", spec).write(data)
        file.flush()


@contextmanager
def opened(contender: Format, path: Path, spec: ArraySpec, mode: Literal["r", "r+"] = "r") -> Iterator[ArrayHandle]:
    """The array "a" of an existing file."""
    with closing(contender.open(path, mode)) as file:
        yield file.open_array("a", spec)


def holds(contender: Format, path: Path, spec: ArraySpec, expected: np.ndarray) -> None:
    """The array "a" of the file, opened again, equals `expected`."""
    with opened(contender, path, spec) as handle:
        same(contender, handle.read(), expected)


def round_trip(contender: Format, path: Path, spec: ArraySpec, data: np.ndarray | None = None) -> None:
    """Write, close, open, read, compare."""
    data = sample(spec) if data is None else data
    store(contender, path, spec, data)
    holds(contender, path, spec, data)


def description(contender: Format, path: Path) -> ArraySpec:
    """The description of the array "a" in the file."""
    with closing(contender.open(path)) as file:
        return file.describe("a")


def plain_spec(contender: Format, shape: tuple[int, ...] = SHAPE, **more: Any) -> ArraySpec:
    """An array with a type and number of axes that the format accepts; a table if it accepts only tables."""
    wanted = shape[: contender.capabilities.max_ndim]
    for spec in [*(ArraySpec(wanted, np.dtype(name), **more) for name in ("i4", "f4", "f8")),
                 ArraySpec(wanted[:1], TABLE, **more)]:  # fmt: skip
        if contender.refusal(spec, NO_NEED) is None:
            return spec
    reason = contender.refusal(ArraySpec(wanted, np.dtype("f4"), **more), NO_NEED)
    raise Refused(f"{contender.name}: {reason}")


def accepted(contender: Format, layout: StoredLayout, **more: Any) -> bool:
    """Whether the format accepts any array with this layout."""
    try:
        plain_spec(contender, layout=layout, **more)
    except Refused:
        return False
    return True


def layouts(contender: Format, codecs: Sequence[Codec] = (), scale: int = 1) -> list[StoredLayout]:
    """The layouts that the format accepts, among contiguous, chunked and sharded ones."""
    ndim, chain = len(plain_spec(contender).shape), CodecChain(codecs)
    chunk = tuple(scale * extent for extent in CHUNK[:ndim])
    shard = tuple(scale * extent for extent in SHARD[:ndim])
    candidates = [
        StoredLayout(codecs=chain),
        StoredLayout(chunk, codecs=chain),
        StoredLayout(chunk, shard, codecs=chain),
    ]
    return [layout for layout in candidates if accepted(contender, layout)]


def specs_of_each_layout(contender: Format) -> list[ArraySpec]:
    """The library's own layout, then every layout that you can ask for."""
    return [plain_spec(contender, layout=layout) for layout in [None, *layouts(contender)]]


def stored_bytes(path: Path) -> bytes:
    """All bytes of the file, or of the files in the directory."""
    files = [path] if path.is_file() else sorted(entry for entry in path.rglob("*") if entry.is_file())
    return b"\n".join(file.read_bytes() for file in files)
