"""NetCDF-3, FITS, Zarr and HDF4 files, generated and foreign: every array equal to what netCDF4, fitsio, zarr and pyhdf
read, or refused by name.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import formats_made
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import DamagedFile, ReadError, Unsupported

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
Arrays = Iterable[tuple[str, Callable[[], Any], Any]]
"""Names, values, and of FITS the header."""


def same(found: np.ndarray, expected: Any) -> bool:
    """Equal in shape and values; NaN is NaN; text and bytes by their bytes."""
    found, expected = np.asarray(found), np.ma.getdata(np.asarray(expected))
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


def netcdf_oracle(path: Path) -> Arrays:
    """Names and values by netCDF4."""
    import netCDF4

    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        for name, variable in file.variables.items():
            variable.set_auto_chartostring(False)
            yield name, lambda variable=variable: variable[...], None


def fits_oracle(path: Path) -> Arrays:
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


def zarr_oracle(path: Path) -> Arrays:
    """Paths and values by zarr."""
    import zarr

    def walk(group, prefix):
        for name, node in group.members():
            if isinstance(node, zarr.Group):
                yield from walk(node, f"{prefix}{name}/")
            else:
                yield f"{prefix}{name}", lambda node=node: node[...], None

    root = zarr.open(path, mode="r")
    if isinstance(root, zarr.Array):
        yield "", lambda: root[...], None
    else:
        yield from walk(root, "")


def hdf4_oracle(path: Path) -> Arrays:
    """Names and values by pyhdf."""
    from pyhdf.SD import SD, SDC

    file = SD(str(path), SDC.READ)
    seen: Counter[str] = Counter()
    for number in range(file.info()[0]):
        dataset = file.select(number)
        name, rank, shape, *_ = dataset.info()
        if dataset.iscoordvar() and name.startswith("fakeDim"):
            continue  # a dimension that nobody named nor gave values
        shape = [shape] if rank == 1 else list(shape)
        name = name.rstrip("\0").replace("/", "_")
        seen[name] += 1
        name = name if seen[name] == 1 else f"{name}_{seen[name]}"

        def values(dataset=dataset, shape=shape):
            if 0 in shape:
                return np.zeros(shape)
            return np.asarray(dataset.get()).reshape(shape)

        yield name, values, None


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


def outcome(found: Callable[[], Any], expected: Callable[[], Any], header: Any) -> str:
    """What became of one array: the first word counts."""
    try:
        values = expected()
    except Exception as error:
        return f"oracle: {error}"[:100]
    if values is None:
        return "oracle: nothing"
    try:
        got = np.asarray(found())
    except KeyError:
        return "missing"
    except (Unsupported, DamagedFile) as reason:
        return f"refused: {reason}"
    except ReadError as reason:
        return f"wrong: {type(reason).__name__}: {reason}"
    if got.dtype.names == ():
        return "refused: every column is of variable length"
    if header is not None and got.dtype.names:
        return table_same(got, values, header)
    if header is not None and not same(got, values):
        got = unscaled(got, header)
        if np.asarray(values).dtype.kind == got.dtype.kind == "f":
            return "equal" if np.allclose(got, values, equal_nan=True, rtol=1e-6) else "wrong"
    return "equal" if same(got, values) else f"wrong: {got.dtype}{got.shape} {np.asarray(values).dtype}"


def outcomes(kind: str, path: Path) -> list[tuple[str, str]]:
    """Of every array that the oracle lists."""
    try:
        opened = hs.open(path)
    except ReadError as reason:
        found: Callable[[str], Any] = lambda name, reason=reason: (_ for _ in ()).throw(reason)  # noqa: E731
    else:
        found = lambda name: (opened[name] if name else opened)[...]  # noqa: E731
    made = []
    try:
        for name, expected, header in ORACLES[kind](path):
            made.append((name, outcome(lambda name=name: found(name), expected, header)))
    except (OSError, RuntimeError, ValueError) as error:  # the file is damaged for the oracle too
        made.append(("", f"oracle: {error}"[:100]))
    return made


def corpus(folder: Path) -> Iterator[tuple[str, Path]]:
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


def judged(files: Iterable[tuple[str, Path]]) -> tuple[dict[str, Counter[str]], list[str]]:
    """Per kind how many arrays came out how; those that are wrong or missing."""
    totals: dict[str, Counter[str]] = {}
    bad = []
    for kind, path in files:
        for name, said in outcomes(kind, path):
            word = said.partition(":")[0]
            totals.setdefault(kind, Counter())[word] += 1
            if word != "equal":
                print(kind, path.name, name, said)
            if word in ("wrong", "missing"):
                bad.append(f"{path.name}: {name}: {said}")
    print({kind: dict(counts) for kind, counts in totals.items()})
    return totals, bad


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Path]]:
    """The files of all kinds, made once."""
    for library in ("netCDF4", "fitsio", "zarr", "pyhdf"):
        pytest.importorskip(library, reason="not installed: pip install 'hyperslab[formats]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(formats_made.make(tmp_path_factory.mktemp("generated")))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["netcdf3", "fits", "zarr", "hdf4"])
def test_every_generated_array_is_right(kind: str, generated: list[tuple[str, Path]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        totals, bad = judged((of, path) for of, path in generated if of == kind)
    assert not bad
    assert totals[kind]["equal"] >= sum(totals[kind].values()) * 0.9


@pytest.mark.timeout(900)
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of foreign files is not here")
def test_every_foreign_array_is_right_or_refused_by_name() -> None:
    for library in ("netCDF4", "fitsio", "pyhdf"):
        pytest.importorskip(library, reason="not installed: pip install 'hyperslab[formats]'")
    _, bad = judged(corpus(CORPUS))
    assert not bad
