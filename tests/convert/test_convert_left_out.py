"""What a conversion leaves out: it says the array and the reason, and --skip-unsupported helps."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.cli import app

zarr = pytest.importorskip("zarr")
TARGETS = ("zarr2", "zarr3", "hdf5")


def convert(source: Path, form: str, *options: str) -> tuple[int, str, Path]:
    target = source.parent / f"copy.{form}"
    done = CliRunner().invoke(app, ["convert", str(source), str(target), "--format", form, "--overwrite", *options])
    return done.exit_code, done.output + str(done.exception or ""), target


@pytest.mark.parametrize("form", TARGETS)
def test_an_array_whose_external_file_is_missing(tmp_path: Path, form: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["good"] = np.arange(4)
        file.create_dataset("gone", (10,), "f4", external=[(str(tmp_path / "gone.raw"), 0, 40)])
    status, said, _ = convert(tmp_path / "a.h5", form)
    assert status != 0
    assert "gone: " in said
    assert "gone.raw, which is missing" in said
    assert "--skip-unsupported" in said
    status, said, target = convert(tmp_path / "a.h5", form, "--skip-unsupported")
    assert (status, list(hs.open(target).arrays)) == (0, ["good"]), said


@pytest.mark.parametrize("form", TARGETS)
def test_a_text_without_axes_is_converted(tmp_path: Path, form: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["s"] = "q"
        file["g/s"] = "é" * 300
        file["many"] = ["a", "é"]
    status, said, target = convert(tmp_path / "a.h5", form)
    assert status == 0, said
    copy = hs.open(target)
    assert (copy["s"][()], copy["g/s"][()], copy["many"][...].tolist()) == ("q", "é" * 300, ["a", "é"])
    if form != "hdf5":
        group = zarr.open_group(target, mode="r")
        assert (group["s"][()], group["many"][...].tolist()) == ("q", ["a", "é"])


@pytest.mark.parametrize("form", ["zarr2", "zarr3"])
def test_text_that_is_no_utf_8_is_named_and_left_out(tmp_path: Path, form: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["good"] = ["a", "b"]
        file.create_dataset("g/latin", (2,), h5py.string_dtype())[:] = [b"a", b"\xe9"]
    status, said, target = convert(tmp_path / "a.h5", form)
    assert status != 0
    assert "g/latin: its text is not valid UTF-8: leave it out with --skip-unsupported" in said
    assert not target.exists()
    status, said, target = convert(tmp_path / "a.h5", form, "--skip-unsupported")
    assert status == 0, said
    assert "g/latin: its text is not valid UTF-8" in said
    assert hs.open(target)["good"][...].tolist() == ["a", "b"]
    assert list(zarr.open_group(target, mode="r")["g"]) == []
    assert not (target / "g" / "latin").exists()


@pytest.mark.parametrize("form", TARGETS)
def test_long_doubles_among_the_attributes(tmp_path: Path, form: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(4)
        file["x"].attrs["one"] = np.longdouble("0.1")
        file.attrs["pair"] = np.clongdouble(1 - 2j)
    status, said, target = convert(tmp_path / "a.h5", form)
    assert status == 0, said
    copy = hs.open(target)
    assert float(copy["x"].attrs["one"]) == 0.1
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file["x"].attrs["huge"] = np.longdouble("1e4000")
    status, said, _ = convert(tmp_path / "a.h5", form)
    assert (status == 0) == (form == "hdf5"), said
    assert form == "hdf5" or "x: JSON cannot express its attribute 'huge'" in said
