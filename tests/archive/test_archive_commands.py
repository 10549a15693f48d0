"""`info`, `read` and `verify` on good files, on damaged files, and with wrong requests."""

from __future__ import annotations

import io
import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from command_line import run_hyperslab

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
VALUES = np.arange(20 * 30, dtype="f4").reshape(20, 30)
FUTURE_FILTER = 32767  # an unregistered number


def hyperslab(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_hyperslab(*arguments)


def as_json(*arguments: object) -> dict:
    done = hyperslab(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(status: int, *arguments: object) -> str:
    done = hyperslab(*arguments)
    assert done.returncode == status, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.h5"
    with h5py.File(path, "w") as file:
        made = file.create_dataset("g/sst", data=VALUES, chunks=(4, 10), compression="gzip", fletcher32=True)
        made.attrs["units"] = "K"
        sparse = file.create_dataset("sparse", (40, 40), "i4", chunks=(10, 10))
        sparse[:10] = 1
        file["names"] = np.array(["a", "bcd"], object)
        file["special"] = np.array([np.nan, np.inf, 1.5])
        file["table"] = np.array([(1, 2.5), (3, 4.5)], [("x", "i4"), ("y", "f8")])
        file["nothing"] = h5py.Empty("f4")
        file["gone"] = h5py.SoftLink("/nowhere")
        file["g/up"] = file["/"]
    return path


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """One readable array, and one whose filter is not installed (it was optional, and is made mandatory)."""
    path = tmp_path / "foreign.h5"
    with h5py.File(path, "w") as file:
        file["plain"] = VALUES
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((4, 10))
        properties.set_filter(FUTURE_FILTER, h5py.h5z.FLAG_OPTIONAL, (1, 2))
        space = h5py.h5s.create_simple(VALUES.shape)
        made = h5py.h5d.create(file.id, b"odd", h5py.h5t.IEEE_F32LE, space, properties)
        for row in range(0, 20, 4):
            for column in range(0, 30, 10):
                made.write_direct_chunk((row, column), bytes(160), 0)
    return path


def damage(path: Path, array: str, chunk: int) -> None:
    with h5py.File(path) as file:
        place = file[array].id.get_chunk_info(chunk)
    with path.open("r+b") as file:
        file.seek(place.byte_offset + place.size // 2)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 0xFF]))


def test_info_gives_every_array_with_its_chunks(good) -> None:
    found = as_json("info", good)
    arrays = {row["name"]: row for row in found["arrays"]}
    assert set(arrays) == {"/g/sst", "/sparse", "/names", "/special", "/table", "/nothing"}
    assert found["format"] == "hdf5"
    assert [row["name"] for row in found["groups"]] == ["/g"]
    assert [(row["name"], row["kind"]) for row in found["problems"]] == [("/gone", "dangling")]
    sst, sparse = arrays["/g/sst"], arrays["/sparse"]
    assert (sst["shape"], sst["chunks"], sst["codecs"]) == ([20, 30], [4, 10], ["deflate", "fletcher32"])
    assert (sst["nbytes"], sst["chunk_count"], sst["missing_chunk_count"]) == (2400, 15, 0)
    assert sst["ratio"] == pytest.approx(2400 / sst["stored_nbytes"])
    assert sst["mean_stored_chunk_nbytes"] == pytest.approx(sst["stored_nbytes"] / 15)
    assert (sparse["stored_chunk_count"], sparse["missing_chunk_count"]) == (4, 12)
    assert "too small" in sparse["advice"][0]
    assert arrays["/special"]["advice"] == []


def test_info_for_people(good) -> None:
    done = hyperslab("info", good)
    assert done.returncode == 0, done.stderr
    for said in ("sst", "4×10", "deflate+fletcher32", "4 of 16", "up/ (again)", "gone: dangling"):
        assert said in done.stdout, said
    assert "too small" not in done.stdout, "nobody said that the file is in a cloud"
    assert "too small" in hyperslab("info", good, "--advise").stdout


def test_info_shows_attributes(tmp_path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(3)
        file["x"].attrs["units"] = "m\x1b[31m/s"
        file["x"].attrs["_FillValue"] = np.array([np.nan], "f4")
        file["x"].attrs["valid_range"] = [0.5, np.inf]
        file["x"].attrs["note"] = "nan"
        file.attrs.update({f"note{number}": "long " * 40 for number in range(25)})
    shown = hyperslab("info", tmp_path / "a.h5").stdout
    assert ':note0 = "long' in shown
    assert "…" in shown
    assert "-v shows all" in shown
    every = hyperslab("info", tmp_path / "a.h5", "-v").stdout
    assert "\nx:units = " in every
    assert "\nx:_FillValue = nan\n" in every
    assert "\nx:valid_range = 0.5, inf\n" in every
    assert '\nx:note = "nan"\n' in every
    assert "\x1b" not in every
    assert "…" not in every
    assert as_json("info", tmp_path / "a.h5")["attributes"]["note3"] == "long " * 40


def test_info_shows_nested_attributes_of_zarr(tmp_path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    group.attrs["multiscales"] = [{"name": "x", "levels": [0, 1]}]
    assert as_json("info", tmp_path / "a.zarr")["attributes"]["multiscales"] == group.attrs["multiscales"]
    assert ':multiscales = {"name": "x", "levels": [0, 1]}' in hyperslab("info", tmp_path / "a.zarr").stdout


def test_info_names_dimensions_that_have_no_coordinates(tmp_path) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("time", 12)
        file.createVariable("sst", "f4", ("time",))[:] = 1
    shown = hyperslab("info", tmp_path / "a.nc").stdout
    assert "1 array, 1 dimension without coordinates" in shown
    assert re.search(r"time +a dimension of length 12 *\n", shown)
    assert [one["is_dimension_only"] for one in as_json("info", tmp_path / "a.nc")["arrays"]] == [True, False]


def test_info_of_several_files(good, tmp_path) -> None:
    done = hyperslab("info", good, tmp_path / "nothing.h5", good)
    assert done.returncode == 1
    assert done.stdout.count("arrays,") == 2
    assert "nothing.h5" in done.stderr
    assert [one["format"] for one in json.loads(hyperslab("info", good, good, "--json").stdout)] == ["hdf5", "hdf5"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table_fits_the_terminal(good, width: int) -> None:
    from rich.console import Console

    from hyperslab.cli.archives import entries, open_archive
    from hyperslab.cli.contents import _table, describe

    with open_archive(str(good), []) as root:
        rows = [describe(entry) for entry in entries(root)]
    out = Console(width=width, force_terminal=True, color_system=None, file=io.StringIO())
    out.print(_table(rows, out))
    assert max(map(len, out.file.getvalue().splitlines())) <= width
    names = [str(column.header) for column in _table(rows, out).columns]
    assert {"name", "shape", "stored"} <= set(names)
    assert width == 60 or {"chunks", "in memory"} <= set(names)


def test_names_are_cut_before_sizes_are_left_out(tmp_path) -> None:
    """A long name cost the sizes at 80 columns, which is how wide most terminals are."""
    from rich.console import Console

    from hyperslab.cli.archives import entries, open_archive
    from hyperslab.cli.contents import _table, describe

    with h5py.File(tmp_path / "long.h5", "w") as file:
        made = file.create_dataset(
            "surface/sea_surface_temperature_anomaly_daily_mean", (365, 180, 360), "f4", chunks=(31, 45, 90)
        )
        for number, name in enumerate(("time_of_analysis", "latitude", "longitude")):
            file[name] = np.arange(made.shape[number])
            file[name].make_scale(name)
            made.dims[number].attach_scale(file[name])
    with open_archive(str(tmp_path / "long.h5"), []) as root:
        rows = [describe(entry) for entry in entries(root)]
    out = Console(width=80, force_terminal=True, color_system=None, file=io.StringIO())
    out.print(table := _table(rows, out))
    assert {"in memory", "stored"} <= {str(column.header) for column in table.columns}
    printed = out.file.getvalue()
    assert max(map(len, printed.splitlines())) <= 80
    assert "94.6 MB" in printed
    assert re.search(r"s\w*…\w+n ", printed), printed


def test_info_advises_against_large_chunks(tmp_path) -> None:
    with h5py.File(tmp_path / "large.h5", "w") as file:
        made = file.create_dataset("a", (240 << 20,), "u1", chunks=(120 << 20,), compression="gzip")
        made.id.write_direct_chunk((0,), bytes(101 << 20), 0)
    (row,) = as_json("info", tmp_path / "large.h5")["arrays"]
    assert "too large" in row["advice"][0]


def test_info_names_what_is_unsupported(foreign) -> None:
    found = {row["name"]: row for row in as_json("info", foreign)["arrays"]}
    assert str(FUTURE_FILTER) in found["/odd"]["unsupported"]
    assert str(FUTURE_FILTER) in found["/odd"]["advice"][0]
    assert found["/plain"]["unsupported"] is None


@pytest.mark.parametrize(
    ("selection", "key"),
    [
        ("0, ::4", np.s_[0, ::4]),
        ("2:9:3, 10:20", np.s_[2:9:3, 10:20]),
        ("-1", np.s_[-1]),
        ("-5:, -1", np.s_[-5:, -1]),
        ("..., 3", np.s_[..., 3]),
        ("[1, -2]", np.s_[[1, -2]]),
        ("", np.s_[...]),
    ],
)
def test_read_takes_what_stands_between_brackets(good, selection, key) -> None:
    found = as_json("read", good, "g/sst", selection)
    assert found["values"] == VALUES[key].tolist()
    assert found["shape"] == list(VALUES[key].shape)


def test_read_prints_like_numpy(good) -> None:
    assert hyperslab("read", good, "g/sst", ":3").stdout == f"{VALUES[:3]}\n"
    assert hyperslab("read", good, "g/sst", "1, 2").stdout == f"{VALUES[1, 2]}\n"


def test_read_writes_json_that_is_json(good) -> None:
    assert as_json("read", good, "special")["values"] == ["nan", "inf", 1.5]
    assert as_json("read", good, "names")["values"] == ["a", "bcd"]
    assert as_json("read", good, "table")["values"] == [[1, 2.5], [3, 4.5]]


def test_read_saves_npy(good, tmp_path) -> None:
    for name, expected in (
        ("g/sst", VALUES),
        ("names", np.array(["a", "bcd"])),
        ("table", np.array([(1, 2.5), (3, 4.5)], [("x", "i4"), ("y", "f8")])),
    ):
        done = hyperslab("read", good, name, "-o", tmp_path / "out.npy")
        assert done.returncode == 0, done.stderr
        saved = np.load(tmp_path / "out.npy")
        assert saved.dtype == expected.dtype
        assert np.array_equal(saved, expected)
    hyperslab("read", good, "g/sst", "2, 5:5", "-o", tmp_path / "out.npy")
    assert np.load(tmp_path / "out.npy").shape == (0,)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.h5", "out.npy"]


def test_a_failed_save_leaves_the_old_file(good, tmp_path) -> None:
    np.save(tmp_path / "out.npy", np.arange(3))
    damage(good, "g/sst", 0)
    assert "g/sst" in refused(1, "read", good, "g/sst", "-o", tmp_path / "out.npy")
    assert np.load(tmp_path / "out.npy").tolist() == [0, 1, 2]
    assert not (tmp_path / "out.npy.new").exists()


def test_plan_reads_nothing(good) -> None:
    damage(good, "g/sst", 0)
    plan = as_json("read", good, "g/sst", "0, ::4", "--plan")
    assert (plan["shape"], plan["chunk_count"], plan["output_nbytes"]) == ([8], 3, 32)
    assert plan["decoded_nbytes"] == 3 * 160
    assert plan["read_amplification"] == pytest.approx(15)
    assert "read amplification  15" in hyperslab("read", good, "g/sst", "0, ::4", "--plan").stdout


def test_verify_of_a_good_file(good) -> None:
    found = {row["name"]: row for row in as_json("verify", good)["arrays"]}
    assert {row["status"] for name, row in found.items() if name != "/gone"} == {"ok"}
    assert found["/gone"]["status"] == "dangling"
    assert (found["/g/sst"]["chunk_count"], found["/g/sst"]["decoded_nbytes"]) == (15, 2400)
    assert (found["/sparse"]["chunk_count"], found["/sparse"]["missing_chunk_count"]) == (4, 12)


def test_verify_finds_each_damaged_chunk(good) -> None:
    damage(good, "g/sst", 3)
    damage(good, "g/sst", 11)
    done = hyperslab("verify", good, "--json")
    assert done.returncode == 1
    assert "/g/sst" in done.stderr
    assert "Traceback" not in done.stderr
    found = {row["name"]: row for row in json.loads(done.stdout)["arrays"]}
    assert (found["/g/sst"]["status"], found["/g/sst"]["damaged_count"]) == ("damaged", 2)
    assert found["/g/sst"]["chunk_count"] == 13
    assert len(found["/g/sst"]["messages"]) == 2
    assert found["/sparse"]["status"] == "ok"


@pytest.mark.slow
def test_verify_reads_more_than_it_holds(tmp_path) -> None:
    """An array larger than a slab, with damage in its last chunk."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", (40, 1 << 20), "i4", chunks=(1, 1 << 20), compression=1, fletcher32=True)[...] = 7
    assert as_json("verify", tmp_path / "a.h5")["arrays"][0]["chunk_count"] == 40
    damage(tmp_path / "a.h5", "a", 39)
    done = hyperslab("verify", tmp_path / "a.h5", "--json")
    (row,) = json.loads(done.stdout)["arrays"]
    assert (done.returncode, row["damaged_count"], row["chunk_count"]) == (1, 1, 39)


def test_verify_does_not_call_the_unsupported_damaged(foreign) -> None:
    found = {row["name"]: row for row in as_json("verify", foreign)["arrays"]}
    assert (found["/plain"]["status"], found["/odd"]["status"]) == ("ok", "unsupported")
    assert str(FUTURE_FILTER) in found["/odd"]["messages"][0]


@pytest.mark.slow
def test_a_truncated_file_is_named(tmp_path) -> None:
    path = tmp_path / "short.h5"
    with h5py.File(path, "w") as file:
        file["first"] = np.arange(10)
        file["second"] = np.zeros(100_000)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1000])
    done = hyperslab("verify", path, "--json")
    found = {row["name"]: row["status"] for row in json.loads(done.stdout)["arrays"]}
    assert (done.returncode, found) == (1, {"(the file)": "damaged", "/first": "ok", "/second": "damaged"})
    assert "second" in refused(1, "read", path, "second")
    path.write_bytes(whole[:100])
    for command in (["info"], ["verify"], ["read", "first"]):
        assert "short.h5" in refused(1, command[0], path, *command[1:])


@pytest.mark.slow
def test_wrong_requests_are_refused_in_one_line(good, foreign, tmp_path) -> None:
    (tmp_path / "text.txt").write_text("not an array in here")
    for command in (["info"], ["verify"], ["read", "a"]):
        assert "there is no file" in refused(2, command[0], tmp_path / "none.h5", *command[1:])
        assert "text.txt" in refused(1, command[0], tmp_path / "text.txt", *command[1:])
    assert f"hyperslab read {good} g/sst reads one of its arrays" in refused(2, "info", f"{good}:g/sst")
    cases = {
        "did you mean '/g/sst'?": ("g/sss",),
        "is a group": ("g",),
        "/nowhere": ("gone",),
        "3 indices": ("g/sst", "0, 1, 2"),
        "outside": ("g/sst", "20"),
        "positive step": ("g/sst", "::-1"),
        "is not valid": ("g/sst", "1:x"),
        "'0, ::4, 10:20'": ("g/sst", "__import__('os')"),
        "cannot be combined with --json": ("g/sst", "--json", "-o", tmp_path / "out.npy"),
        "there is no folder": ("g/sst", "-o", tmp_path / "none" / "out.npy"),
    }
    for said, arguments in cases.items():
        assert said in refused(2, "read", good, *arguments), said
    assert "no elements" in refused(1, "read", good, "nothing")
    assert str(FUTURE_FILTER) in refused(1, "read", foreign, "odd", "--plan")
    assert "odd" in refused(1, "read", foreign, "odd")


@pytest.mark.parametrize("ending", ["json", "hs"])
def test_what_was_cut_off_is_not_indexed_and_not_priced(good: Path, tmp_path: Path, ending: str) -> None:
    """Arrays at the end may be gone with their names, so the rest would look like all there ever was."""
    good.write_bytes(good.read_bytes()[:-1])
    target = tmp_path / f"refs.{ending}"
    for words in (("index", good, "-o", target), ("predict", f"{good}:x")):
        said = refused(1, *words)
        assert f"{good.name}: the file is 1 bytes shorter than its header says" in said
        assert said.endswith("get a good copy of it [damaged-file]\n")
    assert not target.exists()
