"""Files that become versions: what is in them, what is stored only once, and what happens if an import is stopped."""

from __future__ import annotations

import datetime as dt
import json
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from disks import Trials
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.cli.versions import app
from hyperslab.errors import FileChanged, NoSuchFile, Refused, UsageError
from hyperslab.journal import journaled_file
from hyperslab.versions import import_files
from hyperslab.versions.layout.table import Version, VersionTable
from hyperslab.versions.transfer import stored_grid
from hyperslab.versions.transfer.ahead import Ahead
from hyperslab.versions.transfer.importing import _versions_of
from hyperslab.versions.transfer.stored_grid import StoredGrid

CODECS: dict[str, Any] = {"compression": "gzip", "shuffle": True}


def write(path: Path, number: int, *, chunks: Any = (10, 8), codecs: Any = None, length: int = 60) -> Path:
    """A file whose arrays share most chunks with those of other numbers."""
    depth = np.arange(60.0 * 30).reshape(60, 30)[:length]
    depth[number * 7 % length, number % 30] = -number
    with h5py.File(path, "w") as file:
        file.attrs["title"], file.attrs["day"] = f"survey {number}", f"2024-03-0{number + 1}T06:00"
        made = file.create_dataset("g/depth", data=depth, chunks=chunks, **(CODECS if codecs is None else codecs))
        made.attrs["units"], made.attrs["offset"] = "m", np.float32(number // 2)
        file.create_dataset("words", data=[f"{number // 2}", "é", ""] * 10, dtype=h5py.string_dtype(), chunks=(8,))
        file["flat"] = np.arange(50, dtype=">i4") + number // 3
        file.create_dataset("flags", data=np.arange(20) % 2 == number % 2, chunks=(7,))
    os.utime(path, (1e9 + number * 60, 1e9 + number * 60))
    return path


def files(tmp_path: Path, count: int = 4, **options: Any) -> list[Path]:
    return [write(tmp_path / f"day{number}.h5", number, **options) for number in range(count)]


def check(path: Path, sources: list[Path], *, verify: bool = True) -> None:
    """Every version holds what its file holds, for us and for versioned-hdf5."""
    with hs.VersionedFile(path) as file, h5py.File(path) as h5:
        theirs = VersionedHDF5File(h5)
        for source in sources:
            with h5py.File(source) as one:
                ours, other = file[source.stem], theirs[source.stem]
                for name in ("g/depth", "flat", "flags"):
                    np.testing.assert_array_equal(ours[name][...], one[name][...])
                    np.testing.assert_array_equal(other[name][()], one[name][...])
                    assert ours[name].dtype == one[name].dtype
                assert [str(word) for word in ours["words"][...]] == list(one["words"].asstr())
                assert ours["g/depth"].attrs["offset"] == one["g/depth"].attrs["offset"]
                assert ours.attrs["title"] == one.attrs["title"]
        assert not verify or file.verify().is_whole


def test_files_become_versions_that_share_chunks(tmp_path: Path) -> None:
    sources = files(tmp_path)
    done = import_files(sources, tmp_path / "all.h5")
    assert done.versions == ("day0", "day1", "day2", "day3")
    check(tmp_path / "all.h5", sources)
    with hs.VersionedFile(tmp_path / "all.h5") as file:
        assert [one.parent for one in file.table.values()] == [None, "day0", "day1", "day2"]
        assert file.table["day2"].time == dt.datetime.fromtimestamp(1e9 + 120, dt.UTC)
        assert file["day1"]["g/depth"].attrs["units"] == "m"
        [depth] = [one for one in file.stats().arrays if one.path == "g/depth"]
        assert depth.chunk_count == 6 * 4 + 3  # those of day0, and one more a day
        assert json.loads(file["day1"].attrs["imported_from"])["file"] == "day1.h5"
    assert done.chunk_count == done.same_count + done.found_count + done.new_count
    with h5py.File(tmp_path / "all.h5") as file:
        raw = file["_version_data/g/depth/raw_data"]
        assert (raw.compression, raw.shuffle, raw.chunks) == ("gzip", True, (10, 8))


def test_chunks_are_copied_as_they_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = files(tmp_path, 2)
    from hyperslab.versions.commit.chunk_store import ChunkStore

    encoded = list[str]()
    append = ChunkStore.append
    monkeypatch.setattr(ChunkStore, "append", lambda self, *rest: (encoded.append(self.path), append(self, *rest))[1])
    import_files(sources, tmp_path / "all.h5")
    stored = {}
    with hs.VersionedFile(tmp_path / "all.h5") as file:
        stored["ours"] = file["day0"]["g/depth"].segments()[0].lengths().reshape(6, 4)[:, :3].tolist()
    with hs.open(sources[0]) as one:
        stored["theirs"] = one["g/depth"].segments()[0].lengths().reshape(6, 4)[:, :3].tolist()
    assert stored["ours"] == stored["theirs"]
    assert encoded.count("g/depth") == 6  # only edge chunks: the last column has 6 elements of 8


@pytest.mark.parametrize(
    "other", [{"codecs": {"compression": "lzf"}}, {"chunks": (7, 30)}, {"chunks": None, "codecs": {}}]
)
def test_other_codecs_and_chunks_are_compared_by_their_elements(tmp_path: Path, other: dict[str, Any]) -> None:
    sources = [write(tmp_path / "day0.h5", 0), write(tmp_path / "day1.h5", 0, **other)]
    done = import_files(sources, tmp_path / "all.h5", chunks={"flat": (20,)})
    check(tmp_path / "all.h5", sources)
    with hs.VersionedFile(tmp_path / "all.h5") as file:
        assert file["day1"]["flat"].chunks == (20,)
        assert file.diff("day0", "day1").arrays == {}
    assert done.new_count == done.chunk_count // 2


def test_arrays_that_grow_shrink_come_and_go(tmp_path: Path) -> None:
    sources = [
        write(tmp_path / f"n{number}.h5", number, length=length) for number, length in enumerate((25, 60, 33, 40))
    ]
    with h5py.File(sources[2], "r+") as file:
        del file["flags"]
        file["extra/x"] = np.ones(3)
        file["g"].attrs["note"] = "hello"
    import_files([sources[0], sources[1], sources[3]], tmp_path / "all.h5")
    check(tmp_path / "all.h5", [sources[0], sources[1], sources[3]])
    import_files(sources, tmp_path / "more.h5")
    with hs.VersionedFile(tmp_path / "more.h5") as file:
        assert "flags" not in file["n2"]
        assert "flags" in file["n3"]
        assert "extra" in file["n2"]
        assert "extra" not in file["n3"]
        assert file["n2"]["g"].attrs["note"] == "hello"
        assert "note" not in file["n3"]["g"].attrs
        assert file["n2"]["g/depth"].shape == (33, 30)
        assert file.verify().is_whole


def test_a_file_with_versions_becomes_all_of_them_with_other_chunks(tmp_path: Path) -> None:
    old = tmp_path / "old.h5"
    with h5py.File(old, "w") as h5:
        theirs = VersionedHDF5File(h5)
        for name, parent, at in (("a", None, 3), ("b", "a", 45), ("c", "a", 99), ("d", "c", 5)):
            with theirs.stage_version(name, prev_version=parent) as version:
                if parent is None:
                    version.create_dataset("x", data=np.arange(100), chunks=(10,))
                version["x"][at] = -at
                if name == "d":
                    version["x"].resize((95,))
    for chunks in ({}, {"x": (16,)}):
        made = tmp_path / f"new{len(chunks)}.h5"
        assert import_files([old], made, chunks=chunks).versions == ("a", "b", "c", "d")
        with hs.VersionedFile(made) as file, hs.VersionedFile(old) as before:
            for name in "abcd":
                np.testing.assert_array_equal(file[name]["x"][...], before[name]["x"][...])
                assert (file.table[name].parent, file.table[name].time) == (
                    before.table[name].parent,
                    before.table[name].time,
                )
                assert file[name]["x"].attrs["chunks"].tolist() == [16 if chunks else 10]
            assert file.verify().is_whole
            [x] = file.stats().arrays
            assert x.chunk_count == (7 + 4 if chunks else 10 + 4)  # b and c changed one, d one and the last


def test_an_import_goes_on_and_refuses_what_is_not_the_same(tmp_path: Path) -> None:
    sources = files(tmp_path, 4)
    import_files(sources[:2], tmp_path / "all.h5")
    done = import_files(sources, tmp_path / "all.h5")
    assert (done.present, done.versions) == (("day0", "day1"), ("day2", "day3"))
    check(tmp_path / "all.h5", sources)
    before = (tmp_path / "all.h5").read_bytes()
    assert import_files(sources, tmp_path / "all.h5").versions == ()
    os.utime(sources[1], (1, 1))
    with pytest.raises(UsageError, match=r"'day1'.*not made from"):
        import_files(sources, tmp_path / "all.h5")
    with pytest.raises(NoSuchFile):
        import_files([tmp_path / "none.h5"], tmp_path / "all.h5")
    with pytest.raises(UsageError, match="both become"):
        import_files([sources[0], sources[0]], tmp_path / "all.h5")
    with pytest.raises(UsageError, match="no attribute 'time'"):
        import_files(sources, tmp_path / "new.h5", time="attribute:time")
    assert (tmp_path / "all.h5").read_bytes() == before


@pytest.mark.parametrize("other", [{}, {"chunks": (7, 8)}, {"codecs": {}}])
def test_files_compared_ahead_give_what_files_compared_in_turn_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]
) -> None:
    sources = [*files(tmp_path), write(tmp_path / "day4.h5", 4, length=41, **other), write(tmp_path / "day5.h5", 5)]
    taken: list[set[str]] = []
    take = Ahead.take
    monkeypatch.setattr(Ahead, "take", lambda self, name: taken.append(set(found := take(self, name))) or found)
    ahead = import_files(sources, tmp_path / "ahead.h5")
    assert taken == [set(), *[{"g/depth", "flags"}] * 5]
    monkeypatch.setattr(Ahead, "take", lambda *_: {})
    in_turn = import_files(sources, tmp_path / "in-turn.h5")
    counts = ("versions", "chunk_count", "same_count", "found_count", "new_count", "file_nbytes")
    assert [getattr(ahead, one) for one in counts] == [getattr(in_turn, one) for one in counts]
    check(tmp_path / "ahead.h5", sources)


def test_a_comparison_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    grids = []
    for path in files(tmp_path, 2):
        with hs.open(path) as opened:
            grids.append(StoredGrid.of(opened["g/depth"]))
    new, old = grids
    assert new is not None
    assert old is not None
    assert new.same(old).any()
    assert not new.same(old, lambda: True).any()


@pytest.mark.parametrize("how", ["written", "replaced", "removed"])
def test_a_file_that_changes_after_its_turn_is_not_compared_with(tmp_path: Path, how: str) -> None:
    sources, output = files(tmp_path), tmp_path / "all.h5"
    other = write(tmp_path / "other.h5", 7)

    def change(name: str, *_: int) -> None:
        if name != "day2":
            return
        if how == "replaced":
            other.rename(sources[1])
        elif how == "removed":
            sources[1].unlink()
        else:
            sources[1].write_bytes(sources[2].read_bytes())

    with pytest.raises((FileChanged, NoSuchFile), match=r"day1.h5"):
        import_files(sources, output, progress=change)
    check(output, sources[:1])


def test_the_order_of_many_versions_is_found_in_one_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twice as many versions twice as many are looked at, not four times as many."""
    looked_at = 0
    original = VersionTable.__getitem__

    def counted(table: VersionTable, name: str) -> Version:
        nonlocal looked_at
        looked_at += 1
        return original(table, name)

    counts = []
    for number in (15, 30):
        path = tmp_path / f"{number}.h5"
        with hs.VersionedFile(path, "w") as file:
            for one in range(number):
                with file.stage_version(f"v{one}") as version:
                    version.attrs["number"] = one
        with monkeypatch.context() as context:
            context.setattr(VersionTable, "__getitem__", counted)
            found = [one.name for one in _versions_of(str(path), path.stat(), None)]
        assert found == [f"v{one}" for one in range(number)]
        counts.append(looked_at - sum(counts))
    assert counts[1] < 3 * counts[0]


def test_an_import_follows_the_current_version(tmp_path: Path) -> None:
    sources = files(tmp_path, 3)
    with hs.VersionedFile(tmp_path / "all.h5", "w") as file:
        with file.stage_version("mine") as version:
            version.create_dataset("other", data=np.arange(4))
        with file.stage_version("side1", branch="side") as version:
            version["other"][0] = 5
    import_files(sources[:2], tmp_path / "all.h5")
    import_files(sources, tmp_path / "all.h5")
    with hs.VersionedFile(tmp_path / "all.h5") as file:
        assert (file.table["day0"].parent, file.table["day2"].parent) == ("mine", "day1")
        assert {name: one.version for name, one in file.branches.items()} == {"main": "day2", "side": "side1"}
        assert "other" not in file["day0"]
    check(tmp_path / "all.h5", sources)


def test_the_time_can_be_an_attribute_and_what_cannot_be_held_is_named(tmp_path: Path) -> None:
    sources = files(tmp_path, 2)
    with h5py.File(sources[1], "r+") as file:
        file["scalar"] = 3.5
        file.attrs["link"] = file["flat"].ref
        file["flat"].attrs["chunks"] = 5
    with pytest.raises(Refused, match="leave it out with skip_unsupported"):
        import_files(sources, tmp_path / "all.h5", time="attribute:day")
    with hs.VersionedFile(tmp_path / "all.h5") as file:
        assert file.versions == ["day0"]
    done = import_files(sources, tmp_path / "all.h5", time="attribute:day", skip_unsupported=True)
    assert set(done.left_out) == {"day1: scalar", "day1: @link", "day1: flat@chunks"}
    with hs.VersionedFile(tmp_path / "all.h5") as file:
        assert file.table["day1"].time == dt.datetime(2024, 3, 2, 6, tzinfo=dt.UTC)


def test_another_type_is_refused_and_nothing_is_left_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The versions before it, which were to be committed together with it, are there."""
    sources = files(tmp_path, 5)
    with h5py.File(sources[4], "r+") as file:
        del file["flat"]
        file["flat"] = np.arange(50.0)
    with pytest.raises(UsageError, match="flat has the dtype float64"):
        import_files(sources, tmp_path / "all.h5")
    check(tmp_path / "all.h5", sources[:4])
    with h5py.File(tmp_path / "all.h5", "r+") as h5, VersionedHDF5File(h5).stage_version("next") as version:
        version["flags"][0] = False
    check(tmp_path / "all.h5", sources[:4])
    commits, write = [], journaled_file.write_journal
    monkeypatch.setattr(journaled_file, "write_journal", lambda *said: commits.append(write(*said)))
    import_files(sources[:4], tmp_path / "again.h5", verify=False)
    assert len(commits) == 2  # that of the new file, and that of all versions
    check(tmp_path / "again.h5", sources[:4])


def test_the_command(tmp_path: Path) -> None:
    files(tmp_path, 3)
    runner = CliRunner()
    done = runner.invoke(app, ["import", str(tmp_path / "day*.h5"), "-o", str(tmp_path / "all.h5"), "--json"])
    said = json.loads(done.stdout)
    assert said["versions"] == ["day0", "day1", "day2"]
    again = runner.invoke(app, ["import", str(tmp_path / "day*.h5"), "-o", str(tmp_path / "all.h5")])
    assert "3 were there already" in again.stdout
    back = runner.invoke(app, ["export", str(tmp_path / "all.h5"), "day1..day2", "-o", str(tmp_path / "back")])
    assert sorted(one.name for one in (tmp_path / "back").iterdir()) == ["day1.h5", "day2.h5"], back.output
    for name in ("day1.h5", "day2.h5"):
        with h5py.File(tmp_path / name) as one, h5py.File(tmp_path / "back" / name) as other:
            np.testing.assert_array_equal(one["g/depth"][...], other["g/depth"][...])
    assert runner.invoke(app, ["export", str(tmp_path / "all.h5"), "day2..day1", "-o", str(tmp_path)]).exit_code != 0
    assert runner.invoke(app, ["import", str(tmp_path / "x*"), "-o", str(tmp_path / "all.h5")]).exit_code != 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # from a process that is dead
def test_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a kill at any write, the same import goes on, and all versions are right."""
    sources = files(tmp_path, 3)
    begun = tmp_path / "begun" / "b.h5"
    begun.parent.mkdir()
    import_files(sources[:1], begun)

    def work(path: Path) -> Iterator[int]:
        import_files(sources, path, verify=False)
        yield 3

    trials = Trials(begun, work, monkeypatch, returned=1)
    for _ in trials.kills(4):
        with hs.VersionedFile(trials.path) as file:
            found = [tmp_path / f"{name}.h5" for name in file.versions]
        assert found == sources[: len(found)] != []
        check(trials.path, found, verify=False)
        import_files(sources, trials.path, verify=False)
        check(trials.path, sources)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_files_in_any_chunks(tmp_path: Path, data: st.DataObject) -> None:
    """With commits of versioned-hdf5 in between, in all kinds of chunks, shapes and codecs."""
    sources, whole = [], {}
    target = tmp_path / "all.h5"
    target.unlink(missing_ok=True)
    base = data.draw(
        st.sampled_from([np.arange(60).reshape(12, 5), np.zeros((12, 5), "f4"), np.arange(60.0).reshape(12, 5)])
    )
    for number in range(data.draw(st.integers(2, 4))):
        elements = base[: data.draw(st.integers(1, 12)), : data.draw(st.integers(1, 5))].copy()
        for _ in range(data.draw(st.integers(0, 3))):
            elements[data.draw(st.integers(0, elements.shape[0] - 1)), 0] = data.draw(st.integers(-2, 2))
        chunks = data.draw(st.sampled_from([None, (4, 2), (5, 5), (1, 1), (12, 3)]))
        codec = data.draw(st.sampled_from([None, "gzip", "lzf"])) if chunks else None
        sources.append(tmp_path / f"f{number}.h5")
        with h5py.File(sources[-1], "w") as file:
            limits = (None, None) if chunks else None
            file.create_dataset("x", data=elements, chunks=chunks, compression=codec, maxshape=limits)
        whole[f"f{number}"] = elements
    cut = data.draw(st.sampled_from([{}, {"": (3, 4)}]))
    import_files(sources[:1], target, chunks=cut)
    if data.draw(st.booleans()):
        with h5py.File(target, "r+") as h5, VersionedHDF5File(h5).stage_version("theirs") as version:
            version["x"][0, 0] = 7
    import_files(sources, target, chunks=cut)
    with hs.VersionedFile(target) as file:
        for name, elements in whole.items():
            np.testing.assert_array_equal(file[name]["x"][...], elements)
        assert file.verify().is_whole


@pytest.mark.parametrize("dtype", ["<f8", ">i4", "?", "S5", [("a", "<i2"), ("b", "<f8")], "padded"])
def test_chunks_without_codecs_are_taken_as_they_lie(tmp_path: Path, dtype: Any) -> None:
    kind = np.dtype([("a", "<i2"), ("b", "<f8")], align=True) if dtype == "padded" else np.dtype(dtype)
    rng, paths = np.random.default_rng(5), []
    elements = np.frombuffer(rng.bytes(67 * 30 * kind.itemsize), "u1") % 2
    data = elements.view(kind).reshape(67, 30).copy()
    for number in range(4):
        data[number * 16 : number * 16 + 3] = data[60:63]
        data[5 * number, 7] = data[0, 0]
        paths.append(tmp_path / f"n{number}.h5")
        with h5py.File(paths[-1], "w") as file:
            file.create_dataset("x", data=data, chunks=(4, 5))
            file.create_dataset("y", data=data[:, 0], chunks=(6,))
    done = import_files(paths, tmp_path / "all.h5")
    assert done.chunk_count == done.same_count + done.found_count + done.new_count
    with hs.VersionedFile(tmp_path / "all.h5") as made:
        assert made.verify().is_whole
        for one in paths:
            with h5py.File(one) as file:
                for name in "xy":
                    np.testing.assert_array_equal(made[one.stem][name][...], file[name][...])


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_stored_bytes_are_compared_wherever_they_lie(tmp_path: Path, data: st.DataObject) -> None:
    """Chunks in any order, with gaps, longer and shorter than what is read at a time."""
    stored_grid.PIECE_NBYTES, before = data.draw(st.sampled_from([8, 64, 1 << 17])), stored_grid.PIECE_NBYTES
    try:
        count = data.draw(st.integers(1, 12))
        lengths = np.array(data.draw(st.lists(st.integers(1, 40), min_size=count, max_size=count)), np.int64)
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        content = [rng.integers(0, 2, length, np.uint8) for length in lengths.tolist()]
        grids, expected = [], np.ones(count, bool)
        for side in range(2):
            order = rng.permutation(count) if rng.integers(2) else np.arange(count)
            offsets, stored = np.zeros(count, np.int64), bytearray()
            for at in order.tolist():
                stored += bytes(int(rng.integers(2)) * 3)
                offsets[at] = len(stored)
                stored += content[at].tobytes()
            (tmp_path / str(side)).write_bytes(stored)
            zeros = np.zeros(count, np.int64)
            grids.append(StoredGrid(str(tmp_path / str(side)), (count,), (1,), (), offsets, lengths, zeros, False))
            changed = [number for number in range(count) if side == 0 and rng.integers(3) == 0]
            for number in changed:
                content[number] = content[number].copy()
                content[number][int(rng.integers(lengths[number]))] ^= 1
                expected[number] = False
        np.testing.assert_array_equal(grids[0].same(grids[1]), expected)
        cut = tmp_path / "1"
        cut.write_bytes(cut.read_bytes()[: int(grids[1].offsets[-1] + lengths[-1] - 1)])
        assert not grids[0].same(grids[1])[-1]
        rows = np.zeros((count, 7), np.uint8)
        assert not grids[1].gather(np.arange(count), rows)
    finally:
        stored_grid.PIECE_NBYTES = before


@pytest.mark.parametrize("is_zipped", [False, True])
def test_codecs_of_other_formats_are_decoded(tmp_path: Path, is_zipped: bool) -> None:
    """All chunks of these lie in one file, but HDF5 does not know their codec."""
    path, x = tmp_path / "a.zarr", np.arange(1000.0)
    (path / "x").mkdir(parents=True)
    (path / ".zgroup").write_text('{"zarr_format": 2}')
    about = {"zarr_format": 2, "shape": [1000], "chunks": [250 if is_zipped else 1000], "dtype": "<f8",
             "compressor": {"id": "zlib", "level": 1}, "fill_value": 0, "order": "C", "filters": None}  # fmt: skip
    (path / "x" / ".zarray").write_text(json.dumps(about))
    for number, chunk in enumerate(np.split(x, 4 if is_zipped else 1)):
        (path / "x" / str(number)).write_bytes(zlib.compress(chunk.tobytes(), 1))
    if is_zipped:
        with zipfile.ZipFile(tmp_path / "a.zarr.zip", "w") as made:
            for one in sorted(path.rglob("*")):
                made.write(one, one.relative_to(path))
    import_files([tmp_path / "a.zarr.zip" if is_zipped else path], tmp_path / "all.h5")
    with hs.VersionedFile(tmp_path / "all.h5") as file:
        np.testing.assert_array_equal(file[0]["x"][...], x)
