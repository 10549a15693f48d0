"""Targets that must survive, wishes that concern nothing, and what was lost without a word before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from convert_sources import assert_same

import hyperslab as hs
from hyperslab.conversion import converting
from hyperslab.conversion.journal import ConversionJournal, Finished
from hyperslab.errors import Refused, RunError, UsageError


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=np.arange(60_000.0).reshape(300, 200), chunks=(10, 200))
        file.create_dataset("b", data=np.arange(500, dtype="i2"), chunks=(100,))
    return path


KILLED = """
import os, signal, sys
import hyperslab as hs
from hyperslab.conversion.journal import ConversionJournal
add = ConversionJournal.add
def killing(self, *given):
    add(self, *given)
    os.kill(os.getpid(), signal.SIGKILL)
ConversionJournal.add = killing
hs.convert(sys.argv[1], sys.argv[2], chunks={"a": "100,10"}, codec="deflate-1")
"""


def test_resuming_needs_no_memory_option(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "b.h5"
    subprocess.run([sys.executable, "-c", KILLED, str(source), str(target)], check=False, capture_output=True)
    monkeypatch.setattr(converting, "usual_memory", lambda: 77 << 20)  # what is available differs from run to run
    done = hs.convert(source, target, chunks={"a": "100,10"}, codec="deflate-1", resume=True)
    assert done.is_resumed
    assert_same(source, target, {"a": (100, 10)})
    with pytest.raises(UsageError, match="memory"):
        hs.convert(source, tmp_path / "c.h5", memory=0)


def test_a_line_that_was_cut_off_costs_only_its_slab(tmp_path: Path) -> None:
    header: dict[str, Any] = {"source": "1", "name": "a"}

    def opened() -> ConversionJournal:
        return ConversionJournal(tmp_path / "a", header, resume=True, overwrite=False)

    journal = opened()
    journal.data.write_bytes(b"")
    journal.add("x", 0, Finished(1, None, None))
    journal.close()
    with (journal.folder / "journal.jsonl").open("a") as file:
        file.write('\n{"array": "x", "sl')
    journal = opened()
    journal.add("x", 1, Finished(2, None, None))
    journal.close()
    assert {key: one.checksum for key, one in opened().finished.items()} == {("x", 0): 1, ("x", 1): 2}


def test_another_process_at_work_is_named_as_such(tmp_path: Path) -> None:
    journal = ConversionJournal(tmp_path / "a", {"source": "1"}, resume=False, overwrite=False)
    with pytest.raises(UsageError, match="another process is converting"):
        ConversionJournal(tmp_path / "a", {"source": "1"}, resume=False, overwrite=False)
    journal.remove()


@pytest.mark.parametrize(("before", "after"), [("hdf5", "zarr3"), ("zarr3", "hdf5"), ("zarr2", "zarr3")])
def test_files_and_folders_replace_each_other(source: Path, tmp_path: Path, before: str, after: str) -> None:
    target = tmp_path / "target"
    hs.convert(source, target, format=before)
    hs.convert(source, target, format=after, overwrite=True)
    assert target.is_dir() == (after != "hdf5")
    with hs.open(target) as found:
        np.testing.assert_array_equal(found["b"][...], np.arange(500))
    assert os.access(target, os.R_OK | (os.X_OK if target.is_dir() else 0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.h5", "target"]


def test_a_link_is_followed_and_stays(source: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "link.h5"
    link.symlink_to("elsewhere/real.h5")
    hs.convert(source, link)
    assert link.is_symlink()
    assert_same(source, tmp_path / "elsewhere" / "real.h5")
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["real.h5"]
    link.unlink()
    link.symlink_to("nowhere/real.h5")
    with pytest.raises(UsageError, match="there is no folder"):
        hs.convert(source, link)


def test_pipes_and_sources_are_never_replaced(source: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.h5")
    with pytest.raises(UsageError, match="is a pipe or a device"):
        hs.convert(source, tmp_path / "pipe.h5", overwrite=True)
    parts = []
    for number in range(2):
        parts.append(tmp_path / f"part{number}.h5")
        with h5py.File(parts[-1], "w") as file:
            file["time"] = np.arange(3.0) + 3 * number
            file["time"].make_scale("time")
            file["x"] = np.arange(3) + number
            file["x"].dims[0].attach_scale(file["time"])
    layout = h5py.VirtualLayout((2, 3), "i8")
    for number, part in enumerate(parts):
        layout[number] = h5py.VirtualSource(part.name, "x", (3,))
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    before = [part.read_bytes() for part in parts]
    for given in ([*parts], tmp_path / "virtual.h5"):
        options = {"concat": "time"} if isinstance(given, list) else {}
        with pytest.raises(UsageError, match="is the source, or one of its files"):
            hs.convert(given, parts[1], overwrite=True, **options)
    assert [part.read_bytes() for part in parts] == before


def test_a_target_that_appears_meanwhile_stays(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.h5"

    def appear(*_: Any) -> None:
        target.write_text("mine")

    with pytest.raises(UsageError, match="was created meanwhile"):
        hs.convert(source, target, chunks={"a": "100,10"}, progress=appear)
    assert target.read_text() == "mine"
    target.unlink()
    assert hs.convert(source, target, chunks={"a": "100,10"}, resume=True).is_resumed
    assert_same(source, target)


@pytest.mark.parametrize("is_before", [True, False])
def test_a_kill_while_the_target_gets_its_name(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_before: bool
) -> None:
    target = tmp_path / "b.zarr"
    options: dict[str, Any] = {"overwrite": True, "verify": "none", "chunks": {"a": "100,10"}}
    with h5py.File(tmp_path / "old.h5", "w") as file:
        file.create_dataset("a", data=np.zeros((300, 200)), chunks=(100, 10))
    hs.convert(tmp_path / "old.h5", target)
    real = converting.put_in_place

    def killed(*given: Any) -> None:
        if not is_before:
            real(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(converting, "put_in_place", killed)
        with pytest.raises(KeyboardInterrupt):
            hs.convert(source, target, **options)
    done = hs.convert(source, target, resume=True, **options)
    assert (done.is_resumed, done.array_count) == (is_before, 2)
    with hs.open(target) as found, h5py.File(source) as file:
        np.testing.assert_array_equal(found["a"][...], file["a"][...])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.zarr", "old.h5", "source.h5"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"chunks": {"aa": [1, 2]}}, "has no array 'aa'; did you mean 'a'"),
        ({"chunks": {"a": [1, 2, 3]}}, "these are 3 lengths, but array 'a' has 2 axes"),
        ({"chunks": [1, 2, 3]}, "3 lengths, but the arrays have 1, 2 axes"),
        ({"chunks": "tme=1"}, "no dimension 'tme'"),
        ({"codec": {"nothing": "lzf"}}, "has no array 'nothing'"),
        ({"shards": [100, 200]}, "only Zarr 3 has shards"),
        ({"like": {"arrays": {"/sst": {"chunks": [1]}}}}, "has no array 'sst'"),
        ({"chunks": {"a": [0, 200]}}, "lengths are positive"),
        ({"chunks": "phony_dim_0=0"}, "lengths are positive"),
    ],
)
def test_wishes_that_concern_nothing_are_refused(
    source: Path, tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        hs.convert(source, tmp_path / "b.h5", **given)
    assert [path.name for path in tmp_path.iterdir()] == ["source.h5"]


@pytest.mark.parametrize("format", ["zarr2", "zarr3"])
def test_names_lead_nowhere_outside_the_folder(tmp_path: Path, format: str) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    with h5py.File(tmp_path / "a.h5", "w") as file:
        up = h5py.h5g.create(h5py.h5g.create(file.id, b".."), b"..")
        h5py.h5d.create(up, b"evil", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((4,)))
        file["x"] = np.arange(5)
        file["zarr.json" if format == "zarr3" else ".zgroup"] = np.arange(3)
        file["n" * 256] = np.arange(3)
    with pytest.raises(Refused, match=r"Zarr has no names such as '\.\.'"):
        hs.convert(tmp_path / "a.h5", folder / "b.zarr", format=format)
    done = hs.convert(tmp_path / "a.h5", folder / "b.zarr", format=format, skip_unsupported=True)
    assert len(done.losses) == 3
    assert [path.name for path in folder.iterdir()] == ["b.zarr"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", "inner"]
    with hs.open(folder / "b.zarr") as found:
        assert list(found) == ["x"]


@pytest.mark.parametrize("relayout", [False, True])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_user_blocks_stay(tmp_path: Path, relayout: bool, libver: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=1024, libver=libver) as file:
        file.create_dataset("chunked", data=np.arange(60_000).reshape(300, 200), chunks=(10, 200), compression=1)
        file["plain"] = np.arange(50_000.0)
    with (tmp_path / "a.h5").open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file")
    options: dict[str, Any] = {"relayout": True} if relayout else {"chunks": {"chunked": [50, 50]}}
    hs.convert(tmp_path / "a.h5", tmp_path / "b.h5", **options)
    assert_same(tmp_path / "a.h5", tmp_path / "b.h5")
    assert (tmp_path / "b.h5").read_bytes()[:1024] == (tmp_path / "a.h5").read_bytes()[:1024]
    with h5py.File(tmp_path / "b.h5") as file:
        assert file.userblock_size == 1024


@pytest.mark.skipif(shutil.which("h5dump") is None, reason="h5dump shows comments")
def test_comments_stay(source: Path, tmp_path: Path) -> None:
    with h5py.File(source, "r+") as file:
        h5py.h5o.set_comment(file.id, b"measured by hand", obj_name=b"a")
        h5py.h5o.set_comment(file.id, b"of the file")
    hs.convert(source, tmp_path / "b.h5")
    shown = subprocess.run(["h5dump", "-H", str(tmp_path / "b.h5")], capture_output=True, text=True, check=True)
    assert [line.strip() for line in shown.stdout.splitlines() if "COMMENT" in line] == [
        'COMMENT "of the file"', 'COMMENT "measured by hand"'
    ]  # fmt: skip


@pytest.mark.parametrize("target", ["b.h5", "b.zarr"])
def test_a_missing_source_of_a_virtual_array_is_named(tmp_path: Path, target: str) -> None:
    with h5py.File(tmp_path / "part.h5", "w") as file:
        file["x"] = np.arange(3)
    layout = h5py.VirtualLayout((2, 3), "i8")
    for number, name in enumerate(["part.h5", "gone.h5"]):
        layout[number] = h5py.VirtualSource(name, "x", (3,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_virtual_dataset("v", layout, fillvalue=-1)
    with pytest.raises(Refused, match=r"it shows 'gone\.h5', which is missing"):
        hs.convert(tmp_path / "a.h5", tmp_path / target)
    hs.convert(tmp_path / "a.h5", tmp_path / target, skip_unsupported=True)
    with hs.open(tmp_path / target) as found:
        assert found["v"][...].tolist() == [[0, 1, 2], [-1, -1, -1]]


def test_links_to_files_beside_the_source_are_noted(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["near"] = h5py.ExternalLink("other.h5", "/x")
        file["far"] = h5py.ExternalLink("/data/other.h5", "/x")
    done = hs.convert(tmp_path / "a.h5", tmp_path / "b.h5")
    assert [path for path, _ in done.notes] == ["/near"]


def test_fill_values_at_edges_do_not_confuse_the_verification(tmp_path: Path) -> None:
    values = np.arange(5_000_000, dtype="i4").reshape(1000, 5000)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("packed", data=values[:33, :55], chunks=(10, 10), scaleoffset=0, fillvalue=-7)
        layout = h5py.VirtualLayout((1000, 5000), "i4")
        layout[...] = h5py.VirtualSource("b.h5", "x", (1000, 5000))
        file.create_virtual_dataset("virtual", layout, fillvalue=-7)
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["x"] = values
    hs.convert(tmp_path / "a.h5", tmp_path / "c.h5", chunks={"packed": [7, 20]})
    with h5py.File(tmp_path / "c.h5") as file:
        np.testing.assert_array_equal(file["packed"], values[:33, :55])
        np.testing.assert_array_equal(file["virtual"], values)


def test_a_codec_is_applied_to_large_arrays_in_one_piece(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.zeros((3000, 1000), "f4")
    hs.convert(tmp_path / "a.h5", tmp_path / "b.h5", codec="deflate-4+shuffle")
    with h5py.File(tmp_path / "b.h5") as file:
        assert (file["x"].compression, file["x"].shuffle) == ("gzip", True)
        assert not file["x"][...].any()
    assert (tmp_path / "b.h5").stat().st_size < 200_000


def test_netcdf_gets_only_types_that_it_has(tmp_path: Path) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    xarray = pytest.importorskip("xarray")
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    flags = np.arange(20) % 3 == 0
    group.create_array("flags", data=flags, chunks=(6,))
    group.create_array("few", data=flags[:3])
    group.create_array("half", data=np.arange(5, dtype="f2"))
    group.create_array("complex", data=np.arange(5, dtype="c8"))
    with pytest.raises(Refused, match="NetCDF has no elements of the type float16"):
        hs.convert(tmp_path / "a.zarr", tmp_path / "b.nc")
    done = hs.convert(tmp_path / "a.zarr", tmp_path / "b.nc", skip_unsupported=True)
    assert sorted(path for path, _ in done.losses) == ["complex", "half"]
    with netcdf4.Dataset(tmp_path / "b.nc") as file:
        assert sorted(file.variables) == ["few", "flags"]
        assert file["flags"][...].tolist() == flags.tolist()
    with xarray.open_dataset(tmp_path / "b.nc", engine="netcdf4") as found:
        assert found["flags"].dtype == bool
        np.testing.assert_array_equal(found["flags"], flags)


def test_copied_chunks_and_texts_are_verified(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hyperslab.conversion import stored_chunks, zarr_target

    copy = stored_chunks._Copier._copy

    def damaging(self: Any, at: int, start: int, nbytes: int, buffer: Any) -> None:
        copy(self, at, start, nbytes, buffer)
        os.pwrite(self._file.descriptor, b"\x55", start + nbytes // 2)

    with monkeypatch.context() as patched:
        patched.setattr(stored_chunks._Copier, "_copy", damaging)
        with pytest.raises(RunError, match="its copy is not the same"):
            hs.convert(source, tmp_path / "b.h5", relayout=True)
    with h5py.File(tmp_path / "texts.h5", "w") as file:
        file["t"] = np.array(["one", "two"] * 20, h5py.string_dtype())
    write = zarr_target.ZarrArray.write_texts
    monkeypatch.setattr(zarr_target.ZarrArray, "write_texts", lambda self, box, texts: write(self, box, texts[::-1]))
    with pytest.raises(RunError, match="its text reads differently"):
        hs.convert(tmp_path / "texts.h5", tmp_path / "c.zarr")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.h5", "texts.h5"]


@pytest.mark.parametrize("dtype", ["f8", ">i2", [("a", "<i4"), ("b", "<f4")]])
@pytest.mark.parametrize("chunks", ["3", "contiguous"])
@pytest.mark.parametrize("is_virtual", [True, False], ids=["virtual", "external"])
def test_an_array_that_comes_to_its_own_file_keeps_its_fill_value(
    tmp_path: Path, dtype: Any, chunks: str, is_virtual: bool
) -> None:
    values, fill = np.ones(9, dtype), np.full(1, 7, dtype)[0]
    values[5:] = fill
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file["x"] = values[:5]
    settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    settings.set_fill_value(np.asarray(fill))
    settings.set_fill_time(h5py.h5d.FILL_TIME_ALLOC)
    there = h5py.h5s.create_simple((9,))
    if is_virtual:
        there.select_hyperslab((0,), (5,))
        settings.set_virtual(there, str(tmp_path / "source.h5").encode(), b"x", h5py.h5s.create_simple((5,)))
        there.select_all()
    else:
        (tmp_path / "elements").write_bytes(values.tobytes())
        settings.set_external(str(tmp_path / "elements").encode(), 0, h5py.h5f.UNLIMITED)
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        h5py.h5d.create(file.id, b"v", h5py.h5t.py_create(np.dtype(dtype), logical=True), there, settings)
    hs.convert(tmp_path / "virtual.h5", tmp_path / "ordinary.h5", chunks=chunks)
    with h5py.File(tmp_path / "ordinary.h5") as file:
        assert not file["v"].is_virtual
        assert file["v"].external is None
        assert file["v"].fillvalue == fill
        assert file["v"].id.get_create_plist().get_fill_time() == h5py.h5d.FILL_TIME_ALLOC
        np.testing.assert_array_equal(file["v"][...], values)
