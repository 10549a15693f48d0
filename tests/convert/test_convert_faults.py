"""Faults that a hostile reader of the code found: lost data, wrong data, wishes that were ignored."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.conversion import converting, steps, stored_chunks
from hyperslab.conversion.cluster import Cluster
from hyperslab.conversion.partial_file import PartialFile
from hyperslab.errors import DamagedFile, FileChanged, NoSpace, Refused, TooLargeForMemory, Unsupported, UsageError
from hyperslab.memory import available_nbytes

VALUES = np.arange(120_000.0).reshape(300, 400)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "source.h5", "w") as file:
        for name in ("a", "b"):
            file.create_dataset(name, data=VALUES, chunks=(10, 400), compression=1)
    return tmp_path / "source.h5"


def stop_after(count: int) -> Any:
    seen: list[str] = []

    def progress(what: str, *_: int) -> None:
        seen.extend([what] * ("first pass" not in what))
        if len(seen) == count:
            raise KeyboardInterrupt

    return progress


class Done:
    """A future whose result is there."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def result(self) -> Any:
        return self._result

    def release(self) -> None:
        pass


class Client:
    """A client of Dask with four workers, all of them this process."""

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys("abcd", 1)

    def run(self, function: Any, *given: Any) -> dict[str, Any]:
        return {"a": function(*given)}

    def submit(self, function: Any, *given: Any, pure: bool) -> Done:
        return Done(function(*given))

    def cancel(self, waiting: list[Any]) -> None:
        pass


@pytest.mark.parametrize("format", ["hdf5", "zarr3"])
@pytest.mark.parametrize("workers_first", [True, False])
def test_slabs_stay_the_same_with_and_without_workers(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: Any, workers_first: bool
) -> None:
    @contextmanager
    def cluster_of(scheduler: Any) -> Iterator[Cluster | None]:
        yield None if scheduler is None else Cluster(scheduler)

    monkeypatch.setattr(steps, "cluster_of", cluster_of)
    options: dict[str, Any] = {"chunks": "100,20", "memory": 600_000, "format": format, "verify": "none"}
    clients = [Client(), None] if workers_first else [None, Client()]
    with pytest.raises(KeyboardInterrupt):
        hs.convert(source, tmp_path / "t", scheduler=clients[0], progress=stop_after(4), **options)
    assert hs.convert(source, tmp_path / "t", scheduler=clients[1], resume=True, **options).is_resumed
    with hs.open(tmp_path / "t") as found:
        for name in ("a", "b"):
            np.testing.assert_array_equal(found[name][...], VALUES)


@pytest.mark.parametrize("version", [2, 3])
def test_a_chunk_of_a_zarr_folder_that_changes_is_noticed(tmp_path: Path, version: Any) -> None:
    zarr = pytest.importorskip("zarr")
    array = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=version).create_array(
        "x", data=VALUES, chunks=(10, 400)
    )
    options: dict[str, Any] = {"chunks": "100,20", "memory": 400_000}
    with pytest.raises(KeyboardInterrupt):
        hs.convert(tmp_path / "a.zarr", tmp_path / "b.h5", progress=stop_after(1), **options)
    array[250, 3] = -1
    with pytest.raises(FileChanged, match="start again with --overwrite"):
        hs.convert(tmp_path / "a.zarr", tmp_path / "b.h5", resume=True, **options)

    def change(*_: Any) -> None:
        array[200, 3] += 1

    with pytest.raises(FileChanged, match="changed while it was"):
        hs.convert(tmp_path / "a.zarr", tmp_path / "c.h5", progress=change, **options)
    assert not (tmp_path / "c.h5").exists()


def _advice(**one: Any) -> dict[str, Any]:
    return {"schema": "hyperslab-advice", "version": 1, "source": "x", "arrays": {"/a": {"format": "hdf5", **one}}}


@pytest.mark.parametrize("is_zarr", [False, True])
def test_an_advice_of_one_piece_is_applied(source: Path, tmp_path: Path, is_zarr: bool) -> None:
    if is_zarr:
        source = hs.convert(source, tmp_path / "a.zarr").target
    hs.convert(source, tmp_path / "b.h5", like=_advice(chunks=None))
    with h5py.File(tmp_path / "b.h5") as file:
        assert (file["a"].chunks, file["b"].chunks) == (None, (10, 400))
        np.testing.assert_array_equal(file["a"], VALUES)
    with pytest.raises(UsageError, match="Zarr has no arrays in one piece"):
        hs.convert(source, tmp_path / "b.zarr", like=_advice(chunks=None))
    with pytest.raises(UsageError, match="an array in one piece has no codec"):
        hs.convert(source, tmp_path / "c.h5", chunks="contiguous", codec="zstd-3")
    hs.convert(source, tmp_path / "c.h5", chunks={"b": "contiguous"})
    with h5py.File(tmp_path / "c.h5") as file:
        assert (file["a"].chunks, file["b"].chunks) == ((10, 400), None)
        np.testing.assert_array_equal(file["b"], VALUES)


def test_an_advised_axis_can_grow(source: Path, tmp_path: Path) -> None:
    for chunks in ([20, 40], [10, 400]):  # new ones, and those that it has
        advice = _advice(chunks=chunks, codec="deflate", level=1, append_axis=0)
        hs.convert(source, tmp_path / "b.h5", like=advice, overwrite=True)
        with h5py.File(tmp_path / "b.h5", "r+") as file:
            assert (file["a"].maxshape, file["a"].chunks) == ((None, 400), tuple(chunks))
            file["a"].resize(310, axis=0)
            file["a"][300:] = 1
            np.testing.assert_array_equal(file["a"][:300], VALUES)
    with h5py.File(source, "r") as file:
        assert file["a"].maxshape == (300, 400)
    done = hs.convert(source, tmp_path / "b.zarr", like=_advice(chunks=[20, 40]))
    assert "the advice is for hdf5" in dict(done.notes)["a"]


@pytest.mark.parametrize("options", [{}, {"relayout": True}, {"codec": "deflate-1"}, {"chunks": "7,9"}])
def test_chunks_at_the_edge_without_filters_are_read_again(tmp_path: Path, options: dict[str, Any]) -> None:
    set_options = ctypes.CDLL(h5py.h5s.__file__).H5Pset_chunk_opts
    set_options.argtypes = (ctypes.c_int64, ctypes.c_uint)
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        settings.set_chunk((10, 10))
        settings.set_shuffle()
        settings.set_deflate(4)
        assert set_options(settings.id, 2) == 0  # H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS
        space = h5py.h5s.create_simple((25, 25))
        made = h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_INT32, space, settings)
        h5py.Dataset(made)[...] = np.arange(625).reshape(25, 25)
    hs.convert(tmp_path / "a.h5", tmp_path / "b.h5", **options)
    with h5py.File(tmp_path / "b.h5") as file:
        np.testing.assert_array_equal(file["x"], np.arange(625).reshape(25, 25))


@pytest.mark.parametrize("is_zarr", [False, True])
def test_chunks_of_an_axis_that_grows_may_be_longer_than_it_is(tmp_path: Path, is_zarr: bool) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.arange(3.0), chunks=(2,), maxshape=(None,))
        file.create_dataset("empty", shape=(0, 4), chunks=(2, 4), maxshape=(None, 4), dtype="f4", compression=4)
        file.create_dataset("fixed", data=np.arange(3.0), chunks=(2,), maxshape=(50,))
    target = tmp_path / ("b.zarr" if is_zarr else "b.h5")
    hs.convert(tmp_path / "a.h5", target, chunks={"x": "100", "empty": "50,9", "fixed": "100"})
    found: Any = pytest.importorskip("zarr").open_group(target) if is_zarr else h5py.File(target)
    assert [found[name].chunks for name in ("x", "empty", "fixed")] == [(100,), (50, 4), (50,)]
    np.testing.assert_array_equal(found["x"][...], np.arange(3.0))


def test_an_empty_array_that_grows_gets_its_codec(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("inner/x", shape=(0, 4), chunks=(2, 4), maxshape=(None, 4), dtype="f4", compression=4)
    with hs.open(tmp_path / "a.h5") as opened:  # a group is written from its parts
        hs.convert(opened["inner"], tmp_path / "b.h5", chunks="50,4")
        hs.convert(opened["inner"], tmp_path / "c.h5", codec="lzf")
    with h5py.File(tmp_path / "b.h5") as one, h5py.File(tmp_path / "c.h5") as other:
        assert (one["x"].chunks, one["x"].compression, other["x"].compression) == ((50, 4), "gzip", "lzf")


def test_a_target_that_appears_while_the_data_are_synced_stays(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "b.h5"
    monkeypatch.setattr(converting, "sync_one", lambda _: target.write_text("mine"))
    with pytest.raises(UsageError, match="was created meanwhile"):
        hs.convert(source, target, chunks="100,20")
    assert target.read_text() == "mine"


@pytest.mark.parametrize("is_link", [False, True])
def test_a_folder_of_yours_is_never_cleared(source: Path, tmp_path: Path, is_link: bool) -> None:
    folder, mine = tmp_path / ".b.h5.hyperslab-partial", tmp_path / "mine"
    if is_link:
        mine.mkdir()
        folder.symlink_to(mine)
    else:
        mine = folder
        mine.mkdir()
    (mine / "thesis.tex").write_text("mine")
    for options in ({"overwrite": True}, {"resume": True}, {}):
        with pytest.raises(UsageError, match="is not an unfinished conversion of ours"):
            hs.convert(source, tmp_path / "b.h5", **options)
    assert (mine / "thesis.tex").read_text() == "mine"


@pytest.mark.parametrize("format", ["zarr2", "zarr3"])
def test_a_zarr_folder_with_files_of_yours_is_not_replaced(source: Path, tmp_path: Path, format: Any) -> None:
    hs.convert(source, tmp_path / "b.zarr", format=format)
    hs.convert(source, tmp_path / "b.zarr", format=format, overwrite=True)
    (tmp_path / "b.zarr" / "inner").mkdir()
    (tmp_path / "b.zarr" / "inner" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"holds inner/notes\.txt, which is not of Zarr and would be lost"):
        hs.convert(source, tmp_path / "b.zarr", format=format, overwrite=True)
    assert (tmp_path / "b.zarr" / "inner" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("format", ["zarr2", "zarr3"])
def test_attributes_with_names_of_zarr_are_kept(tmp_path: Path, format: Any) -> None:
    zarr = pytest.importorskip("zarr")
    attributes = {"attributes": 5, "order": 2, "shape": "round", "units": "K"}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(3)
        file["x"].attrs.update(attributes)
        file["y"] = np.arange(3)
        file["y"].attrs["dtype"] = 1j
    done = hs.convert(tmp_path / "a.h5", tmp_path / "b.zarr", format=format, skip_unsupported=True)
    assert attributes.items() <= dict(zarr.open_group(tmp_path / "b.zarr")["x"].attrs).items()
    kept = "dtype" in zarr.open_group(tmp_path / "b.zarr")["y"].attrs
    assert kept or [path for path, _ in done.losses] == ["y"]


@pytest.mark.parametrize("codec", ["zstd-3", "deflate-1+shuffle"])
def test_small_arrays_get_the_codec_that_you_ask_for(tmp_path: Path, codec: str) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("t", 100)
        file.createVariable("x", "f4", ("t",))[...] = 1
    hs.convert(tmp_path / "a.nc", tmp_path / "b.h5", codec={"x": codec})
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["x"].id.get_create_plist().get_nfilters() == len(codec.split("+"))


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("verify", ["checksum", "library"])
def test_an_array_with_the_name_of_a_dimension_is_renamed_as_netcdf_does(
    tmp_path: Path, order: str, verify: Any
) -> None:
    zarr, netcdf4 = pytest.importorskip("zarr"), pytest.importorskip("netCDF4")
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=3)
    names = {"a": "v", "b": "lat"} if order == "ab" else {"a": "zv", "b": "lat"}
    group.create_array(names["a"], data=np.arange(10.0), dimension_names=("lat",))
    group.create_array(names["b"], data=VALUES, dimension_names=("y", "x"))
    hs.convert(tmp_path / "a.zarr", tmp_path / "b.nc", verify=verify)
    with netcdf4.Dataset(tmp_path / "b.nc") as file:
        assert file[names["a"]].dimensions == ("lat",)
        assert file["lat"].dimensions == ("y", "x")
        np.testing.assert_array_equal(file["lat"][...], VALUES)


def test_elements_that_netcdf_lacks_are_named(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    group.create_array("when", data=np.arange(5).astype("M8[s]"))
    group.create_array("n", data=np.arange(5))
    with pytest.raises(Refused, match="when: NetCDF has no elements of the type datetime64"):
        hs.convert(tmp_path / "a.zarr", tmp_path / "b.nc")
    hs.convert(tmp_path / "a.zarr", tmp_path / "b.nc", skip_unsupported=True)
    with h5py.File(tmp_path / "b.nc") as file:
        np.testing.assert_array_equal(file["n"], np.arange(5))


def test_the_names_of_an_enumeration_are_not_lost_without_a_word(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        colours = h5py.enum_dtype({"red": 1, "blue": 2}, basetype="u1")
        file.create_dataset("colours", data=np.array([1, 2], "u1"), dtype=colours)
        file["flags"] = np.array([True, False])
    with pytest.raises(Refused, match=r"no enumerations, .*red = 1"):
        hs.convert(tmp_path / "a.h5", tmp_path / "b.zarr")
    done = hs.convert(tmp_path / "a.h5", tmp_path / "b.zarr", skip_unsupported=True)
    assert [path for path, _ in done.losses] == ["colours"]


def test_arrays_larger_than_the_memory_are_copied_in_one_piece(tmp_path: Path) -> None:
    file = PartialFile(tmp_path / "a", is_new=True)
    assert len(file.stand_in(1 << 44)) == 1 << 44
    file.close()


def test_a_refused_resume_loses_nothing(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def cluster_of(scheduler: Any) -> Iterator[Cluster | None]:
        if scheduler is not None:
            raise UsageError("no Dask scheduler answers")
        yield None

    monkeypatch.setattr(steps, "cluster_of", cluster_of)
    options: dict[str, Any] = {"chunks": "100,20", "memory": 400_000}
    with pytest.raises(KeyboardInterrupt):
        hs.convert(source, tmp_path / "b.h5", progress=stop_after(3), **options)
    with pytest.raises(UsageError, match="no Dask scheduler"):
        hs.convert(source, tmp_path / "b.h5", scheduler="tcp://nowhere:1", resume=True, **options)
    assert hs.convert(source, tmp_path / "b.h5", resume=True, **options).is_resumed


def test_committed_types_of_attributes_stay_committed(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["kind"] = np.dtype([("x", "f4"), ("n", "i8")])
        file.attrs.create("one", np.zeros((), file["kind"].dtype), dtype=file["kind"])
    hs.convert(tmp_path / "a.h5", tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert file.attrs.get_id("one").get_type().committed()


@pytest.mark.parametrize("codec", [None, "deflate-1"])
def test_a_filter_that_nobody_has_is_named_first(tmp_path: Path, codec: str | None) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        settings.set_chunk((10,))
        settings.set_filter(32999, h5py.h5z.FLAG_OPTIONAL, (1,))
        made = h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((20,)), settings)
        made.write_direct_chunk((0,), b"secret", 0)
        file["y"] = np.arange(3)
    if codec is None:  # copied as it is stored
        hs.convert(tmp_path / "a.h5", tmp_path / "b.h5")
        with h5py.File(tmp_path / "b.h5") as file:
            assert file["x"].id.read_direct_chunk((0,)) == (0, b"secret")
        return
    with pytest.raises(Unsupported, match="/x: its filter 32999 is not installed: leave this out"):
        hs.convert(tmp_path / "a.h5", tmp_path / "b.h5", codec=codec)
    done = hs.convert(tmp_path / "a.h5", tmp_path / "b.h5", codec=codec, skip_unsupported=True)
    assert [path for path, _ in done.losses] == ["/x"]


def test_numbers_of_numpy_and_none_threads(source: Path, tmp_path: Path) -> None:
    hs.convert(source, tmp_path / "b.h5", chunks={"phony_dim_0": np.int64(25)})
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["a"].chunks == (25, 400)
    with pytest.raises(UsageError, match="threads must be at least 1"):
        hs.convert(source, tmp_path / "c.h5", threads=0)


def test_shards_are_said_to_be_rounded_up(source: Path, tmp_path: Path) -> None:
    done = hs.convert(source, tmp_path / "b.zarr", chunks="70,400", shards="100,400")
    assert "shape 140×400" in dict(done.notes)["a"]


@pytest.mark.parametrize("version", [1, 2])
def test_limits_of_a_batch_job_bound_the_memory(tmp_path: Path, version: int) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 99 kB\nMemAvailable:  8000000 kB\n")
    mount = tmp_path / "sys/fs/cgroup" / ("memory" if version == 1 else "")
    (mount / "job/step").mkdir(parents=True)
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if version == 1 else ("memory.max", "memory.current")
    line = "4:memory:/job/step" if version == 1 else "0::/job/step"
    (tmp_path / "proc/self/cgroup").write_text(f"{line}\n")
    assert available_nbytes(tmp_path) == 8_000_000 * 1024
    for folder, limit in ((mount / "job", "1000000"), (mount / "job/step", "max" if version == 2 else str(1 << 62))):
        for name, text in zip(
            (*names, "memory.stat"), (limit, "400000", "anon 5\ninactive_file 100000\n"), strict=True
        ):
            (folder / name).write_text(text)
    assert available_nbytes(tmp_path) == 700_000


@pytest.mark.parametrize("text", ["5", "[]", ""])
def test_a_damaged_journal_starts_again(source: Path, tmp_path: Path, text: str) -> None:
    folder = tmp_path / ".b.h5.hyperslab-partial"
    folder.mkdir()
    (folder / "journal.jsonl").write_text(text)
    (folder / "b.h5").write_bytes(b"")
    assert not hs.convert(source, tmp_path / "b.h5", chunks="100,20", resume=True).is_resumed
    with h5py.File(tmp_path / "b.h5") as file:
        np.testing.assert_array_equal(file["a"], VALUES)


@pytest.mark.parametrize("options", [{}, {"chunks": "7,9"}, {"relayout": True}])
def test_a_source_that_you_have_open_is_converted(source: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    with h5py.File(source) as opened:  # a notebook often has
        hs.convert(source, tmp_path / "b.h5", **options)
        with h5py.File(tmp_path / "b.h5") as file:
            np.testing.assert_array_equal(file["a"], opened["a"])


def test_an_array_that_only_h5py_reads_gets_new_chunks(tmp_path: Path) -> None:
    hdf5plugin = pytest.importorskip("hdf5plugin")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=VALUES, chunks=(30, 40), **hdf5plugin.SZ3(absolute=1e-9))
    with hs.open(tmp_path / "a.h5") as opened:
        assert opened["x"].via == "h5py"
        expected = opened["x"][...]
    hs.convert(tmp_path / "a.h5", tmp_path / "b.h5", codec="deflate-1", chunks="100,10")
    with h5py.File(tmp_path / "b.h5") as file:
        np.testing.assert_array_equal(file["x"], expected)


@pytest.mark.parametrize("fails", [False, True])
def test_chunks_are_copied_by_two_threads_or_not_at_all(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    monkeypatch.setattr(stored_chunks, "PART_NBYTES", 1000)
    copy, threads, both = stored_chunks._Copier._copy, set(), threading.Event()

    def counted(self: Any, *given: Any) -> None:
        threads.add(threading.current_thread().name)
        if len(threads) == 2:
            both.set()
        assert both.wait(100), "the other thread gets its part"
        if fails and threading.current_thread() is not threading.main_thread():
            raise OSError(errno.ENOSPC, "No space left on device")
        copy(self, *given)

    monkeypatch.setattr(stored_chunks._Copier, "_copy", counted)
    if fails:
        with pytest.raises(NoSpace, match="make room"):
            hs.convert(source, tmp_path / "b.h5", relayout=True, verify="none")
        assert not (tmp_path / "b.h5").exists()
        return
    hs.convert(source, tmp_path / "b.h5", relayout=True, verify="none")
    assert len(threads) == 2
    with h5py.File(tmp_path / "b.h5") as file:
        np.testing.assert_array_equal(file["a"], VALUES)
        np.testing.assert_array_equal(file["b"], VALUES)


def test_a_file_that_was_cut_off_is_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "cut.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(8.0), chunks=(4,))
        file.create_dataset("y", data=VALUES, chunks=(10, 400))
    os.truncate(path, path.stat().st_size - 5000)
    for name in ("a.h5", "a.nc", "a.zarr"):
        with pytest.raises(
            DamagedFile, match=r"cut\.h5: the file is 5000 bytes shorter than its header says.*good copy"
        ):
            hs.convert(path, tmp_path / name)
    with pytest.raises(DamagedFile, match=r"5000 bytes shorter.*or convert to Zarr"):  # libhdf5 opens no such file
        hs.convert(path, tmp_path / "a.h5", skip_unsupported=True)
    with pytest.raises(DamagedFile, match=r"array /y of .*chunk \[29, 0\]"):
        hs.convert(path, tmp_path / "a.zarr", skip_unsupported=True)
    assert [one.name for one in tmp_path.iterdir()] == ["cut.h5"]  # no copy will be better: nothing waits for --resume


@pytest.mark.parametrize("name", ["a.h5", "a.zarr"])
def test_a_chunk_of_an_axis_that_can_grow_must_fit_in_memory(tmp_path: Path, name: str) -> None:
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file.create_dataset("x", data=np.arange(8.0), chunks=(4,), maxshape=(None,))
    for length in (1 << 18, 1 << 28, 1 << 60):
        with pytest.raises(TooLargeForMemory, match=f"--memory must be at least {2 * 8 * length} bytes"):
            hs.convert(tmp_path / "source.h5", tmp_path / name, chunks=[length], memory=1 << 20)
    hs.convert(tmp_path / "source.h5", tmp_path / name, chunks=[1 << 16], memory=1 << 20)
    assert hs.open(tmp_path / name)["x"].chunks == (1 << 16,)
