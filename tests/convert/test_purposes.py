"""`convert --for`: what changes, what stays, and what the archive's own check says of it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import files as files_of
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.chunk_grid import MOST_GROWN_NBYTES
from hyperslab.cli.program import app
from hyperslab.conversion.cmip7 import LEAST_NBYTES
from hyperslab.conversion.converting import Task
from hyperslab.conversion.purposes import plan_for
from hyperslab.errors import RunError, UsageError

STEPS = 40
Shape = tuple[int, ...]


def make(path: Path, rest: Shape = (96, 144), chunks: Shape = (1, 96, 144), steps: int = STEPS, **more: Any) -> Path:
    """A file as models write it: one chunk for each step, indexes among the chunks."""
    values = np.random.default_rng(6).integers(0, 900, (steps, *rest)).astype("f4")
    axes = ("time", *("z", "y", "x")[-len(rest) :])
    with h5py.File(path, "w") as file:
        file.attrs["variable_id"] = "tas"
        time = file.create_dataset("time", (0,), "f8", chunks=(1,), maxshape=(None,))
        time.attrs["bounds"] = np.bytes_("time_bnds")
        bounds = file.create_dataset("time_bnds", (0, 2), "f8", chunks=(1, 2), maxshape=(None, 2))
        options: dict[str, Any] = {"compression": 1, "shuffle": True, **more}
        data = file.create_dataset("tas", (0, *rest), "f4", chunks=chunks, maxshape=(None, *rest), **options)
        data.attrs["units"] = "K"
        for step in range(steps):
            for array, value in ((time, step), (bounds, (step, step + 1)), (data, values[step])):
                array.resize(step + 1, axis=0)
                array[step] = value
        for axis, name in enumerate(axes):
            if name != "time":
                file.create_dataset(name, data=np.arange(float(rest[axis - 1])))
            file[name].make_scale(name)
            data.dims[axis].attach_scale(file[name])
    return path


def verdict(*paths: Path) -> list[str]:
    """What the archive's check says of files."""
    pytest.importorskip("pyfive", reason="not installed: pip install cmip7-repack")
    script = next(one for one in files_of("cmip7-repack") or () if one.name == "check_cmip7_packing")
    done = subprocess.run(
        [sys.executable, str(script.locate()), *map(str, paths)], check=False, capture_output=True, text=True
    )
    return [one.partition(":")[0] for one in done.stdout.splitlines()] if done.returncode in (0, 1) else [done.stderr]


def same_content(one: Path, other: Path) -> None:
    with h5py.File(one) as before, h5py.File(other) as after:
        assert list(before) == list(after)
        assert dict(before.attrs) == dict(after.attrs)
        for name in before:
            np.testing.assert_array_equal(before[name], after[name])
            assert before[name].maxshape == after[name].maxshape
            mine, theirs = (
                {k: v for k, v in each[name].attrs.items() if k not in REFERENCES} for each in (before, after)
            )
            assert mine == theirs


REFERENCES = ("DIMENSION_LIST", "REFERENCE_LIST")
# The rest of the shape, the chunks, and more.
KINDS: dict[str, tuple[Shape, Shape, int]] = {
    "maps": ((96, 144), (1, 96, 144), STEPS),
    "levels": ((9, 96, 144), (1, 1, 48, 72), 6),
    "few steps of small chunks": ((180, 2000), (1, 9, 50), 2),
    "one chunk": ((8, 9), (STEPS, 8, 9), STEPS),
    "nearly large enough": ((96, 144), (75, 96, 144), 80),
    "large enough": ((96, 144), (78, 96, 144), 80),
    "series": ((6000,), (1, 500), 180),
}


def test_the_archive_s_check_passes_all_that_cmip7_writes(tmp_path: Path) -> None:
    made = []
    for number, (name, (rest, chunks, steps)) in enumerate(KINDS.items()):
        source = make(tmp_path / f"{number}.nc", rest, chunks, steps)
        target = tmp_path / f"{number}-cmip7.nc"
        hs.convert(source, target, purpose="cmip7")
        same_content(source, target)
        made.append(target)
        with hs.open(target) as group:
            assert plan_for(group, "cmip7").suits, name
    assert verdict(*made) == ["PASS"] * len(KINDS)
    assert verdict(tmp_path / "0.nc") == ["FAIL"]


@pytest.mark.parametrize(
    "words", [("ncdump",), ("ncdump", "-h"), ("h5dump", "-A"), ("h5dump", "-d", "/tas")], ids=" ".join
)
def test_other_tools_see_the_same_file(tmp_path: Path, words: tuple[str, ...]) -> None:
    """All attributes too, such as those of CF, and the axes."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed: tests/install-system-packages.sh")
    nc = pytest.importorskip("netCDF4")
    source, target = tmp_path / "a" / "x.nc", tmp_path / "b" / "x.nc"
    source.parent.mkdir()
    target.parent.mkdir()
    with nc.Dataset(source, "w") as made:
        made.setncatts(
            {"Conventions": "CF-1.11", "variable_id": "tas", "history": "made\nby a test", "forcing": [1, 2]}
        )
        for axis, length in (("time", None), ("lat", 30), ("bnds", 2)):
            made.createDimension(axis, length)
        time = made.createVariable("time", "f8", ("time",), chunksizes=(1,))
        time.setncatts({"bounds": "time_bnds", "units": "days since 1850-01-01", "calendar": "360_day"})
        made.createVariable("time_bnds", "f8", ("time", "bnds"), chunksizes=(1, 2))[:] = np.arange(40).reshape(20, 2)
        made.createVariable("lat", "f4", ("lat",))[:] = np.arange(30)
        data = made.createVariable("tas", "f4", ("time", "lat"), chunksizes=(1, 30), zlib=True, fill_value=1e20)
        data.setncatts({"units": "K", "cell_methods": "time: mean", "missing_value": np.float32(1e20)})
        time[:] = np.arange(20)
        data[:] = np.ma.masked_less(np.random.default_rng(3).normal(280, 9, (20, 30)), 270)
    hs.convert(source, target, purpose="cmip7")
    assert source.read_bytes() != target.read_bytes()
    before, after = (
        subprocess.run([*words, "x.nc"], cwd=path.parent, capture_output=True, check=True).stdout
        for path in (source, target)
    )
    assert without_addresses(after) == without_addresses(before)


def without_addresses(shown: bytes) -> bytes:
    """What h5dump shows, but for the addresses of what references lead to."""
    return re.sub(rb"(DATASET|GROUP) \d+", rb"\1", shown)


def test_cmip7_lengthens_only_the_slowest_axis_if_that_suffices(tmp_path: Path) -> None:
    hs.convert(make(tmp_path / "a.nc"), tmp_path / "b.nc", purpose="cmip7")
    hs.convert(make(tmp_path / "long.nc", (96, 144), (5, 48, 144), 160), tmp_path / "c.nc", purpose="cmip7")
    with h5py.File(tmp_path / "b.nc") as file, h5py.File(tmp_path / "c.nc") as other:
        assert (file["time"].chunks, file["time_bnds"].chunks) == ((STEPS,), (STEPS, 2))
        assert file["tas"].chunks == (STEPS, 96, 144)
        assert other["tas"].chunks == (LEAST_NBYTES // (48 * 144 * 4), 48, 144)
        for array in (file["time"], file["tas"], other["tas"]):
            assert (array.compression, array.compression_opts, array.shuffle, array.fletcher32) == (
                "gzip",
                4,
                True,
                True,
            )


@pytest.mark.parametrize("kind", KINDS)
def test_cloud_grows_chunks_that_are_too_small_and_copies_the_others(tmp_path: Path, kind: str) -> None:
    rest, chunks, steps = KINDS[kind]
    source = make(tmp_path / "a.nc", rest, chunks, steps)
    hs.convert(source, tmp_path / "b.nc", purpose="cloud")
    same_content(source, tmp_path / "b.nc")
    with h5py.File(source) as before, h5py.File(tmp_path / "b.nc") as after:
        old, new = before["tas"], after["tas"]
        nbytes = int(np.prod(new.chunks)) * 4
        assert LEAST_NBYTES <= nbytes <= MOST_GROWN_NBYTES or new.chunks == new.shape
        assert after["time"].chunks == (steps,)
        if new.chunks == old.chunks:
            stored = [each.id.get_chunk_info(0) for each in (old, new)]
            parts = [
                path.read_bytes()[one.byte_offset :][: one.size]
                for path, one in zip((source, tmp_path / "b.nc"), stored, strict=True)
            ]
            assert parts[0] == parts[1]
        else:
            assert new.fletcher32
            assert (new.compression, new.compression_opts) == ("gzip", 1)
    with hs.open(tmp_path / "b.nc") as group:
        assert plan_for(group, "cloud").suits


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


def test_several_files_in_place_and_a_dry_run_that_touches_none(tmp_path: Path) -> None:
    paths = [make(tmp_path / f"{name}.nc") for name in ("a", "b")]
    kept = tmp_path / "kept.nc"
    kept.write_bytes(paths[0].read_bytes())
    paths[1].chmod(0o640)
    before = [digest(path) for path in paths]
    said = run("convert", "--for", "cmip7", "--in-place", "--dry-run", *paths)
    assert said.exit_code == 0, said.output
    assert "tas: chunks of 1 x 96 x 144 become chunks of 40 x 96 x 144" in said.output
    assert [digest(path) for path in paths] == before
    (tmp_path / "no.nc").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(90))
    done = run("convert", "--for", "cmip7", "--in-place", paths[0], tmp_path / "no.nc", paths[1])
    assert done.exit_code == 1
    assert "no.nc failed" in done.output
    same_content(kept, paths[0])
    assert paths[1].stat().st_mode & 0o777 == 0o640
    assert verdict(*paths) == ["PASS", "PASS"]
    after = [digest(path) for path in paths]
    again = run("convert", "--for", "cmip7", "--in-place", "--json", *paths)
    assert [one["is_unchanged"] for one in json.loads(again.stdout)] == [True, True]
    assert [digest(path) for path in paths] == after
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.nc", "b.nc", "kept.nc", "no.nc"]


def test_a_failure_at_any_step_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "a.nc")
    before = digest(path)
    steps = ("_journal", "_write_and_name", "converting.write", "converting.put_in_place", "steps.verified")
    for step in steps:
        with monkeypatch.context() as patched:

            def fail(*_: Any, **__: Any) -> None:
                raise RunError("as if the machine failed")

            if step.startswith("_"):
                patched.setattr(Task, step, fail)
            else:
                patched.setattr(f"hyperslab.conversion.{step}", fail)
            with pytest.raises(RunError):
                hs.convert(path, path, purpose="cmip7", in_place=True)
        assert digest(path) == before, step
        assert [one.name for one in tmp_path.iterdir()] == ["a.nc"], step


def test_a_kill_at_any_write_leaves_a_whole_file(tmp_path: Path) -> None:
    """A child is killed by itself before the nth write to the new file, or the nth rename or removal."""
    path, wanted = tmp_path / "a.nc", tmp_path / "wanted.nc"
    make(path, steps=12)
    source = path.read_bytes()
    hs.convert(path, wanted, purpose="cmip7")
    killed = 0
    for after in (0, 1, 2, 5, 20, 40, 60, 80, 100, 200):
        path.write_bytes(source)
        child = os.fork()
        if not child:
            die_after(after)
            hs.convert(path, path, purpose="cmip7", in_place=True, threads=1, overwrite=True)
            os._exit(0)
        killed += os.waitpid(child, 0)[1] == 9
        same_content(wanted, path)
        hs.convert(path, path, purpose="cmip7", in_place=True, overwrite=True)
        with hs.open(path) as group:
            assert plan_for(group, "cmip7").suits
        assert sorted(one.name for one in tmp_path.iterdir()) == ["a.nc", "wanted.nc"]
    assert killed > 3
    assert verdict(path) == ["PASS"]


def die_after(count: int) -> None:
    """Kill this process before one of the calls that change files."""
    left = [count]

    def counted(real: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            if not left[0]:
                os.kill(os.getpid(), 9)
            left[0] -= 1
            return real(*given, **named)

        return call

    for name in ("pwrite", "rename", "replace", "unlink", "rmdir", "mkdir", "ftruncate", "fsync"):
        setattr(os, name, counted(getattr(os, name)))


def test_what_cannot_be_done_in_place_is_refused_by_name(tmp_path: Path) -> None:
    path = make(tmp_path / "a.nc", steps=3)
    with hs.VersionedFile(tmp_path / "versions.h5", "w") as file, file.stage_version("one") as version:
        version.create_dataset("x", data=np.arange(5))
    (tmp_path / "linked.nc").hardlink_to(make(tmp_path / "b.nc", steps=3))
    options: dict[str, Any] = {"purpose": "cmip7", "in_place": True}
    for one, said in {"linked.nc": "hard links", "versions.h5": "holds versions"}.items():
        with pytest.raises(UsageError, match=said):
            hs.convert(tmp_path / one, tmp_path / one, **options)
    with pytest.raises(UsageError, match="is not the source"):
        hs.convert(path, tmp_path / "b.nc", **options)
    with pytest.raises(UsageError, match="decides chunks and codecs itself"):
        hs.convert(path, tmp_path / "c.nc", purpose="cloud", codec="zstd:3")
    with pytest.raises(UsageError, match="is for HDF5 and NetCDF4"):
        hs.convert(path, tmp_path / "c.zarr", purpose="cloud")
    with pytest.raises(UsageError, match="cmip6"):
        hs.convert(path, tmp_path / "c.nc", purpose="cmip6")
    for words, said in {("--dry-run",): "add --for cmip7", ("--in-place", "-o", "folder"): "leave out -o"}.items():
        refused = run("convert", path, *words).exception
        assert isinstance(refused, UsageError)
        assert said in str(refused)


def test_files_without_time_without_variable_and_with_odd_attributes_get_their_metadata_in_front(
    tmp_path: Path,
) -> None:
    for number, odd in enumerate((None, b"nothing", "groups/inside", np.arange(3), "\udcff", "fx")):
        path = tmp_path / f"{number}.nc"
        with h5py.File(path, "w") as file:
            array = file.create_dataset("fx", data=np.arange(600.0), chunks=(3,))
            file.create_dataset("other", data=np.arange(600.0), chunks=(3,))
            file.create_group("time")
            if odd is not None:
                file.attrs["variable_id"] = np.bytes_(os.fsencode(odd)) if isinstance(odd, str) else odd
            array.attrs["bounds"] = "nothing"
        hs.convert(path, path, purpose="cmip7", in_place=True)
        with hs.open(path) as group:
            assert plan_for(group, "cmip7").suits
            assert (group["fx"].chunks == (600,)) == (isinstance(odd, str) and odd == "fx")


def test_a_file_that_another_program_writes_is_not_replaced(tmp_path: Path) -> None:
    path = make(tmp_path / "a.nc", steps=3)
    with h5py.File(path, "r+", locking=True) as file:
        with pytest.raises(UsageError, match="open for writing in another program"):
            hs.convert(path, path, purpose="cmip7", in_place=True)
        file["time"][1] = 77
    with h5py.File(path, "r", locking=True) as reader:
        hs.convert(path, path, purpose="cmip7", in_place=True)
        assert reader["time"].chunks == (1,)
    with h5py.File(path) as file:
        assert (file["time"][1], file["time"].chunks) == (77, (3,))
    assert [one.name for one in tmp_path.iterdir()] == ["a.nc"]


def test_lists_of_numbers_of_any_length_do_not_stand_in_front_of_indexes(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        lists = file.create_dataset("lists", (600,), h5py.vlen_dtype("i4"), chunks=(5,), maxshape=(None,))
        for number in range(600):
            lists[number] = np.arange(number % 7)
        file.create_dataset("others", data=np.arange(6000.0), chunks=(10,))
    before = path.read_bytes()
    first = hs.convert(path, path, purpose="cmip7", in_place=True)
    assert not first.is_unchanged
    assert path.read_bytes() != before
    assert hs.convert(path, path, purpose="cmip7", in_place=True).is_unchanged
    with h5py.File(path) as file:
        assert [len(one) for one in file["lists"]] == [number % 7 for number in range(600)]
