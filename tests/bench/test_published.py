"""The replays repeat the published programs with each fault in its original position. Seconds are never compared."""

from __future__ import annotations

import builtins
import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hyperslab.bench.operations import Operation
from hyperslab.bench.published import REPLAYS, PublishedArrays, common_io, compound, formats_2002, make_replay
from hyperslab.errors import MissingLibrary, Refused, StudyError
from hyperslab.formats import availability

WRITE, SEPARATE, READ = (Operation(name=name) for name in ("write", "write-separate", "read-all"))
SMALL = PublishedArrays((64,), 3, np.dtype("float32"))
TABLE = PublishedArrays((5,), 1, np.dtype("float32"), properties=3)


def needs(*formats: str) -> None:
    for name in formats:
        if isinstance(missing := availability(name), MissingLibrary):
            pytest.skip(str(missing))


class Tape:
    """Records, in order, the ticks of a module's clock and the calls that a test cares about."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
        self.events: list[str] = []
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(module, "perf_counter", self._tick)

    def _tick(self) -> float:
        self.events.append("tick")
        return float(len(self.events))

    def listen(self, holder: Any, name: str) -> None:
        called = getattr(holder, name, None) or getattr(builtins, name)

        def heard(*given: Any, **named: Any) -> Any:
            self.events.append(name)
            return called(*given, **named)

        self._monkeypatch.setattr(holder, name, heard, raising=False)


@pytest.mark.parametrize("name", REPLAYS)
def test_a_replay_names_itself_and_its_faults(name: str) -> None:
    replay = make_replay(name)
    assert replay.name == name
    assert replay.trials > replay.dropped
    assert replay.faults
    assert all(key.startswith("B") and sentence for key, sentence in replay.faults.items())


def test_an_unknown_replay_is_refused() -> None:
    with pytest.raises(StudyError, match="common-io-basic"):
        make_replay("seed9")


@pytest.mark.parametrize("shape", [(64,), (4, 8), (2, 3, 4)])
@pytest.mark.parametrize(
    ("operation", "compressed"),
    [(WRITE, False), (SEPARATE, False), (SEPARATE, True)],
    ids=["one loop", "two loops", "compressed"],
)
@pytest.mark.parametrize("name", ["hdf5", "netcdf4", "zarr2"])
def test_basic_writes_what_it_reads(
    tmp_path: Path, name: str, operation: Operation, compressed: bool, shape: tuple[int, ...], capsys: Any
) -> None:
    needs(name)
    arrays = PublishedArrays(shape, 3, np.dtype("float32"), compressed=compressed)
    replay, path = make_replay("common-io-basic"), tmp_path / "file"
    for _ in range(2):  # a trial may write twice, in one loop and in two
        written = replay.write(name, path, arrays, operation)
    assert capsys.readouterr().out == ""
    read = replay.read(name, path, arrays, READ)
    assert capsys.readouterr().out.count("[") >= 3
    assert {phase for phase, seconds in written.items() if seconds} == {"create_array", "write"}
    assert {phase for phase, seconds in read.items() if seconds} == {"open_array", "read"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]  # B10: copied, renamed, original removed


def test_the_read_timer_holds_the_printing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("hdf5")
    replay = make_replay("common-io-basic")
    replay.write("hdf5", tmp_path / "file", SMALL, WRITE)
    tape = Tape(monkeypatch, common_io)
    tape.listen(common_io, "print")
    replay.read("hdf5", tmp_path / "file", SMALL, READ)
    assert tape.events == ["tick", "tick", "print", "tick"] * 3


def test_opening_the_file_is_not_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("netcdf4")
    replay = make_replay("common-io-basic")
    replay.write("netcdf4", tmp_path / "file", SMALL, WRITE)
    tape = Tape(monkeypatch, common_io)
    tape.listen(common_io.NetCDF4, "open_file")
    replay.read("netcdf4", tmp_path / "file", SMALL, READ)
    assert tape.events == ["open_file", *["tick"] * 9]


def test_in_two_loops_creating_is_the_last_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("hdf5")
    creating, writing = [0, 1, 10, 12, 20, 24], [100, 101, 110, 111, 120, 121]  # 1, 2 and 4 s; 1 s each
    ticks = iter([*creating, *writing])
    monkeypatch.setattr(common_io, "perf_counter", lambda: float(next(ticks)))
    phases = make_replay("common-io-basic").write("hdf5", tmp_path / "file", SMALL, SEPARATE)
    assert phases == {"create_array": 3 * 4.0, "write": 3.0}


def test_in_one_loop_creating_is_the_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("hdf5")
    ticks = iter([0, 1, 3, 10, 12, 14, 20, 24, 26])
    monkeypatch.setattr(common_io, "perf_counter", lambda: float(next(ticks)))
    phases = make_replay("common-io-basic").write("hdf5", tmp_path / "file", SMALL, WRITE)
    assert phases == {"create_array": 1.0 + 2 + 4, "write": 2.0 + 2 + 2}


def test_defaults_are_compared(tmp_path: Path) -> None:
    needs("hdf5", "netcdf4", "zarr2")
    import h5py
    import netCDF4
    import zarr

    replay = make_replay("common-io-basic")
    for name in replay.formats:
        replay.write(name, tmp_path / name, SMALL, WRITE)
    with h5py.File(tmp_path / "hdf5") as file:
        assert file["Dataset_0"].chunks is None
    with netCDF4.Dataset(tmp_path / "netcdf4") as file:
        assert all(dimension.isunlimited() for dimension in file.dimensions.values())
        assert file["Dataset_0"].chunking() == [1024]
    array = zarr.open_group(tmp_path / "zarr2", mode="r")["Dataset_0"]
    assert array.metadata.zarr_format == 2
    assert array.metadata.compressor.get_config()["cname"] == "lz4"


def test_compression_is_level_9_but_4_in_netcdf4(tmp_path: Path) -> None:
    needs("hdf5", "netcdf4", "zarr2")
    import h5py
    import netCDF4
    import zarr

    replay = make_replay("common-io-basic")
    for name in replay.formats:
        packed = PublishedArrays((64,), 1, np.dtype("float32"), compressed=True)
        replay.write(name, tmp_path / name, packed, SEPARATE)
    with h5py.File(tmp_path / "hdf5") as file:
        (values,) = file["Dataset_0"]._filters.values()
        assert values[4:7] == (9, 1, 5)  # level, byte shuffle, zstd
    with netCDF4.Dataset(tmp_path / "netcdf4") as file:
        filters = file["Dataset_0"].filters()
        assert (filters["blosc"]["compressor"], filters["complevel"]) == ("blosc_zstd", 4)
    config = zarr.open_group(tmp_path / "zarr2", mode="r")["Dataset_0"].metadata.compressor.get_config()
    assert (config["cname"], config["clevel"]) == ("zstd", 9)


def test_csv_is_parsed_before_the_clock_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replay = make_replay("common-io-csv")
    replay.write("csv", tmp_path / "file", SMALL, WRITE)
    tape = Tape(monkeypatch, common_io)
    tape.listen(np, "loadtxt")
    replay.read("csv", tmp_path / "file", SMALL, READ)
    assert tape.events == ["loadtxt", "tick", "tick"] * 3


def test_csv_is_saved_loaded_filled_and_saved_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = Tape(monkeypatch, common_io)
    tape.listen(np, "loadtxt")
    tape.listen(np, "savetxt")
    matrix = PublishedArrays((4, 8), 2, np.dtype("float32"))
    make_replay("common-io-csv").write("csv", tmp_path / "file", matrix, WRITE)
    assert tape.events == ["savetxt", "loadtxt", "tick", "savetxt", "tick"] * 2
    kept = np.loadtxt(tmp_path / "file" / "Dataset_1.csv", delimiter=",")
    assert kept.shape == (4, 8)
    assert np.array_equal(kept, np.round(kept, 6))  # B12: '%f'


def test_csv_of_three_axes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="one or two axes"):
        make_replay("common-io-csv").write("csv", tmp_path / "f", PublishedArrays((2, 2, 2), 1, np.dtype("f4")), WRITE)


@pytest.mark.parametrize("name", ["common-io-basic", "common-io-csv", "common-io-compound", "formats-2002"])
def test_operations_and_formats_that_a_study_had_not_are_refused(tmp_path: Path, name: str) -> None:
    replay = make_replay(name)
    with pytest.raises(Refused, match="does not support append"):
        replay.write(replay.formats[-1], tmp_path / "f", SMALL, Operation(name="append"))
    with pytest.raises(Refused, match="does not support overwrite"):
        replay.read(replay.formats[-1], tmp_path / "f", SMALL, Operation(name="overwrite"))


@pytest.mark.parametrize("operation", ["read-all", "read-fields", "read-random-rows", "read-half-fields"])
@pytest.mark.parametrize(("name", "loader"), [("hdf5-compound", "_load_hdf5"), ("csv", "_load_csv")])
def test_tables_are_read_whole_inside_every_timer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, loader: str, operation: str
) -> None:
    needs("hdf5", "csv")
    replay = make_replay("common-io-compound")
    for write in ("write", "write-fields"):
        replay.write(name, tmp_path / "file", TABLE, Operation(name=write))
    tape = Tape(monkeypatch, compound)
    tape.listen(compound, loader)
    replay.read(name, tmp_path / "file", TABLE, Operation(name=operation))
    assert tape.events == ["tick", loader, "tick"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_hdf5_is_written_property_by_property(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("hdf5")
    tape = Tape(monkeypatch, compound)
    tape.listen(compound, "random_array")
    make_replay("common-io-compound").write("hdf5-compound", tmp_path / "file", TABLE, WRITE)
    assert tape.events == ["random_array", "tick", "tick"] * 3


def test_csv_by_rows_has_rows_as_long_as_there_are_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = Tape(monkeypatch, compound)
    tape.listen(compound, "random_array")
    compound._write_csv_by_rows(tmp_path / "rows", 5)
    with open(tmp_path / "rows") as stream:
        assert [len(row) for row in csv.reader(stream)] == [5] * 5
    assert tape.events == ["tick", *["random_array"] * 5, "tick"]


def test_csv_by_columns_gains_a_column_of_indices(tmp_path: Path) -> None:
    needs("hdf5", "csv")
    make_replay("common-io-compound").write("csv", tmp_path / "file", TABLE, Operation(name="write-fields"))
    with open(tmp_path / "file") as stream:
        assert next(csv.reader(stream)) == ["", "p0", "p1", "p2"]


def test_a_table_needs_properties(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="properties"):
        make_replay("common-io-compound").write("csv", tmp_path / "file", SMALL, WRITE)


READS_2002 = [
    Operation(name="read-all"),
    Operation(name="read-last-array"),
    Operation(name="read-hyperslab", fraction=0.25),
    Operation(name="read-strided", shape=[4, 4], step=2),
]


@pytest.mark.parametrize("name", ["raw", "fits", "hdf4", "netcdf3", "pdb", "hdf5"])
def test_the_phases_of_2002(tmp_path: Path, name: str) -> None:
    needs(name)
    dtype = np.dtype("int16" if name in ("netcdf3", "pdb") else "uint16")
    arrays, replay = PublishedArrays((8, 16), 3, dtype), make_replay("formats-2002")
    written = replay.write(name, tmp_path / "file", arrays, WRITE)
    assert written.keys() == {"create_file", "create_array", "write", "close"}
    for operation in READS_2002:
        read = replay.read(name, tmp_path / "file", arrays, operation)
        assert read.keys() == {"open_file", "open_array", "read", "close"}


def test_a_dtype_that_a_format_has_not_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    needs("netcdf3")
    arrays = PublishedArrays((8, 16), 1, np.dtype("uint16"))
    with pytest.raises(Refused, match=r"uint16.*stored_as"):
        make_replay("formats-2002").read("netcdf3", tmp_path / "file", arrays, READ)
    assert not (tmp_path / "file").exists()


def test_reading_in_2002_writes_its_file_first_outside_the_timers(tmp_path: Path) -> None:
    arrays = PublishedArrays((8, 16), 1, np.dtype("uint16"))
    read = make_replay("formats-2002").read("raw", tmp_path / "file", arrays, READ)
    assert (tmp_path / "file").exists()
    assert not read.keys() & {"create_file", "write"}


@pytest.mark.parametrize("operation", READS_2002[:2], ids=lambda operation: operation.name)
def test_the_last_array_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: Operation) -> None:
    arrays, replay = PublishedArrays((8, 16), 3, np.dtype("uint16")), make_replay("formats-2002")
    replay.write("raw", tmp_path / "file", arrays, WRITE)
    asked: list[int] = []
    monkeypatch.setattr(formats_2002, "_name", lambda index: asked.append(index) or f"array{index}")
    replay.read("raw", tmp_path / "file", arrays, operation)
    assert asked == [2]
