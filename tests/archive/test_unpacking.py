"""`read --decode` gives what `xarray.decode_cf` gives, and times in ISO 8601."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import hyperslab as hs
from draws import few
from hyperslab.archive.conventions.unpacking import unpacked
from hyperslab.cli import app
from hyperslab.errors import Unsupported

xarray = pytest.importorskip("xarray", reason="not installed: pip install 'hyperslab[xarray]'")
runner = CliRunner()
INTEGERS = ("i1", "u1", "<i2", ">i2", "<u2", "<i4")
CALENDARS = ("standard", "proleptic_gregorian", "noleap", "all_leap", "360_day", "julian")
REAL = (
    "standard",
    "proleptic_gregorian",
)  # cftime, which xarray uses for others and far years, fails for missing times


def written(path: Path, values: Any, attrs: dict[str, Any]) -> Path:
    with h5py.File(path, "w") as file:
        file["x"] = values
        for name, value in attrs.items():
            file["x"].attrs[name] = value
    return path


def ours(path: Path) -> Any:
    with hs.open(path) as root:
        return unpacked(root["x"], np.asarray(root["x"][...]))


def theirs(values: Any, attrs: dict[str, Any]) -> Any:
    made = xarray.Dataset({"x": (("n",), values, attrs)})
    return xarray.decode_cf(made, decode_timedelta=False)["x"].values


@st.composite
def packed(draw: Any) -> tuple[Any, dict[str, Any]]:
    dtype = np.dtype(draw(st.sampled_from((*INTEGERS, "<f4", ">f8"))))
    numbers = st.integers(-100 if dtype.kind != "u" else 0, 100)
    values = np.array(draw(st.lists(numbers, min_size=1, max_size=6)), dtype)
    attrs: dict[str, Any] = {"units": "K"}
    for name in draw(st.sets(st.sampled_from(("_FillValue", "missing_value")))):
        attrs[name] = np.array(draw(numbers), dtype.newbyteorder("="))[()]
    for name in draw(st.sets(st.sampled_from(("scale_factor", "add_offset")))):
        kind = draw(st.sampled_from(("f4", "f8")))
        attrs[name] = np.dtype(kind).type(draw(st.floats(-50, 50, width=32, allow_subnormal=False)))
    return values, attrs


@pytest.mark.filterwarnings("ignore:variable 'x' has multiple fill values")
@settings(max_examples=few(150), deadline=None)
@given(packed())
def test_packed_numbers_have_the_bits_of_xarray(tmp_path_factory: pytest.TempPathFactory, given: Any) -> None:
    values, attrs = given
    path = written(tmp_path_factory.getbasetemp() / "packed.h5", values, attrs)
    expected = theirs(values, attrs)
    found = ours(path)
    assert found.dtype == expected.dtype.newbyteorder("=")
    np.testing.assert_array_equal(found, expected)


def iso(value: Any) -> str:
    """Xarray's time in ISO 8601, with nine digits of the second."""
    if isinstance(value, np.datetime64):
        return "NaT" if np.isnat(value) else str(value.astype("M8[ns]"))
    if value is None or value != value:
        return "NaT"
    return f"{value.isoformat().partition('.')[0]}.{value.microsecond:06}000"


def padded(text: str) -> str:
    whole, _, rest = text.partition(".")
    return text if text == "NaT" else f"{whole}.{rest.ljust(9, '0')}"


@st.composite
def times(draw: Any) -> tuple[Any, dict[str, Any]]:
    calendar = draw(st.sampled_from(CALENDARS))
    unit, most = draw(st.sampled_from((("days", 60_000), ("hours", 10**6), ("minutes", 10**7), ("seconds", 10**9),
                                       ("milliseconds", 10**12))))  # fmt: skip
    year = draw(st.integers(1700, 2100))
    since = f"{year:04}-{draw(st.integers(1, 12)):02}-{draw(st.integers(1, 28)):02}"
    clock = draw(st.sampled_from(("", " 06:30:00", "T12:00:01", " 00:00:00 +02:00")))
    values = draw(st.lists(st.integers(-most, most), min_size=1, max_size=5))
    attrs: dict[str, Any] = {"units": f"{unit} since {since}{clock}", "calendar": calendar}
    made = np.array(values, "i8")
    if calendar in REAL and 1900 <= year <= 2090 and values[len(values) // 2] not in (values[0], values[-1]):
        attrs["_FillValue"] = np.int64(values[len(values) // 2])
    return made, attrs


@settings(max_examples=few(150), deadline=None)
@given(times())
def test_times_are_those_of_xarray(tmp_path_factory: pytest.TempPathFactory, given: Any) -> None:
    values, attrs = given
    path = written(tmp_path_factory.getbasetemp() / "times.h5", values, attrs)
    expected = [iso(one) for one in theirs(values, attrs)]
    assert [padded(str(one)) for one in ours(path)] == expected


def test_fractions_of_a_day_are_times(tmp_path: Path) -> None:
    path = written(tmp_path / "a.h5", np.array([0.5, np.nan, 1.25]), {"units": "days since 2001-01-01"})
    assert [str(one) for one in ours(path)] == ["2001-01-01T12:00:00", "NaT", "2001-01-02T06:00:00"]


@pytest.mark.parametrize("units", ["days since yesterday", "months since 2001-01-01", "K since 1", "m"])
def test_units_that_are_no_times_are_left_alone(units: str, tmp_path: Path) -> None:
    assert ours(written(tmp_path / "a.h5", np.arange(3), {"units": units})).tolist() == [0, 1, 2]


def test_far_times_are_an_error_not_a_wrong_date(tmp_path: Path) -> None:
    path = written(tmp_path / "a.h5", np.array([2**62]), {"units": "days since 2001-01-01"})
    with pytest.raises(Unsupported, match=r"a\.h5 cannot be decoded by CF's rules.*too far"):
        ours(path)
    path = written(tmp_path / "b.h5", np.arange(3, dtype="i2"), {"scale_factor": "two"})
    with pytest.raises(Unsupported, match="scale_factor"):
        ours(path)


def test_the_command(tmp_path: Path) -> None:
    attrs = {"scale_factor": np.float32(0.5), "_FillValue": np.int16(-1)}
    path = written(tmp_path / "a.h5", np.array([[2, -1], [4, 6]], "i2"), attrs)
    done = runner.invoke(app, ["read", f"{path}:x", "0", "--decode", "--json"])
    assert json.loads(done.stdout) == {"array": "/x", "shape": [2], "dtype": "float32", "values": [1.0, "nan"]}
    out = tmp_path / "x.npy"
    assert runner.invoke(app, ["read", f"{path}:x", "--decode", "-o", str(out)]).exit_code == 0
    np.testing.assert_array_equal(np.load(out), np.array([[1, np.nan], [2, 3]], "f4"))
    written(tmp_path / "t.h5", np.arange(2), {"units": "hours since 2001-01-01"})
    done = runner.invoke(app, ["read", str(tmp_path / "t.h5"), "x", "--decode", "--json"])
    assert json.loads(done.stdout)["values"] == ["2001-01-01T00:00:00", "2001-01-01T01:00:00"]
