"""Writes the streams that `against_libdeflate` measures: one file per kind of data, level and shuffle, by zlib itself.

A file holds streams one after the other: the size of the stream and of its output (32 bits each), and its bytes.
"""

import hashlib
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

LEVELS = (1, 4, 6, 9)


def shuffled(chunk: np.ndarray) -> bytes:
    """The bytes of a chunk as HDF5's shuffle orders them."""
    return chunk.reshape(-1, 1).view("u1").reshape(-1, chunk.dtype.itemsize).T.tobytes()


def chunks(array: np.ndarray, nbytes: int = 1 << 20, most: int = 6) -> list[np.ndarray]:
    """The array cut into chunks of this size, or at least four."""
    flat = np.ascontiguousarray(array).reshape(-1)
    nbytes = min(nbytes, flat.nbytes // 4)
    each = min(flat.size, nbytes // flat.dtype.itemsize)
    return [flat[start : start + each] for start in range(0, flat.size - each + 1, each)][:most]


def invented() -> Iterator[tuple[str, np.ndarray, tuple[int, ...]]]:
    """Fields like those of models and satellites."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:1024, 0:1024].astype("f4") / 160
    waves = [5 + 2 * np.sin(2 * x + t * 0.07) * np.cos(y) for t in range(2)]
    noise = [rng.standard_normal(x.shape, dtype="f4") for _ in waves]
    rounded = np.stack([np.round(a + 0.03 * n, 2) for a, n in zip(waves, noise, strict=True)])
    yield "f4_rounded", rounded.astype("f4"), LEVELS
    yield "f4_noisy", (rounded + 0.001 * noise[0]).astype("f4"), (1, 4)
    temperature = np.stack([15 + 12 * np.cos(y * 0.7) + 2 * np.sin(2 * x) + 0.25 * n for n in noise])
    packed = np.round(temperature / 0.01).astype("i2")
    packed[:, np.sin(3 * x + 1) * np.cos(2.3 * y) + 0.4 * np.sin(7 * x * y / 6) > 0.35] = -32768
    yield "i2_filled", packed, LEVELS
    smooth = 280 + 20 * np.cos(y * 0.7) + np.cumsum(0.02 * noise[1], axis=1)
    smooth = (smooth - smooth.min()) / np.ptp(smooth)
    yield "i2_smooth", np.round(smooth * 65500 - 32750).astype("i2"), (1, 4)
    yield "f8_smooth", np.sin(2 * x.astype("f8")) * np.cos(y.astype("f8")) * 1e2, (4,)
    counts = rng.poisson(np.exp(1.5 + 1.5 * np.sin(3 * x) * np.cos(2 * y)), size=(2, *x.shape))
    yield "u2_counts", counts.astype("u2"), LEVELS


def real(corpus: Path) -> Iterator[tuple[str, np.ndarray, tuple[int, ...]]]:
    """Arrays of files that people have published."""
    hidefix = corpus / "gauteh+hidefix/tests/data"
    with h5py.File(hidefix / "coads_climatology.nc4") as file:
        yield "coads_sst", file["SST"][:], LEVELS
        yield "coads_wind", file["UWND"][:], (4,)
    with h5py.File(corpus / "fsspec+kerchunk/tests/NEONDSTowerTemperatureData.hdf5") as file:
        numbers: list[np.ndarray] = []
        file.visititems(lambda _, item: numbers.extend(flat_fields(item)))
        yield "neon", np.concatenate(numbers)[: 1 << 18], LEVELS


def flat_fields(item: object) -> list[np.ndarray]:
    """The float64 columns of a table."""
    if not isinstance(item, h5py.Dataset) or item.dtype.names is None:
        return []
    table = item[:]
    return [table[name] for name in item.dtype.names if item.dtype[name] == np.float64]


def main(corpus: Path, out: Path) -> None:
    """Writes all files, and prints what is in them."""
    out.mkdir(parents=True, exist_ok=True)
    for sources in (invented(), real(corpus)):
        for name, array, levels in sources:
            for shuffle in (True, False):
                for level in levels if shuffle else levels[:2][-1:]:
                    cut = chunks(array)
                    raw = [shuffled(chunk) if shuffle else chunk.tobytes() for chunk in cut]
                    streams = [(zlib.compress(bytes_, level), len(bytes_)) for bytes_ in raw]
                    data = b"".join(struct.pack("<II", len(s), n) + s for s, n in streams)
                    label = f"{name}{'_shuffled' if shuffle else ''}_l{level}"
                    (out / f"{label}.streams").write_bytes(data)
                    digest = hashlib.sha256(b"".join(raw)).hexdigest()[:16]
                    print(f"{label:28} {len(raw)} x {len(raw[0])} {sum(map(len, raw)) / len(data):.2f} {digest}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
