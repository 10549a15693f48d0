"""With circular links, every walk ends and visits each group and array once, as in h5py."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.archive.tree import open_file
from hyperslab.archive.zarr_store import ZarrStore
from hyperslab.cli import app
from hyperslab.errors import DamagedFile, Unsupported


def made(folder: Path, name: str, *links: tuple[str, str, str]) -> Path:
    """A file with an array, a group that contains itself, and links to other files."""
    path = folder / name
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(3)
        group = file.create_group("g")
        group["self"] = group
        group["x"] = file["x"]
        group["up"] = h5py.SoftLink("/")
        for link, other, where in links:
            file[link] = h5py.ExternalLink(other, where)
    return path


@pytest.fixture
def circles(tmp_path: Path) -> list[Path]:
    """Files that lead to themselves: directly, through each other, and through other names of the same file."""
    alone = made(tmp_path, "alone.h5", ("me", "alone.h5", "/"), ("dot", "./alone.h5", "/g"), ("name", "alias.h5", "/"))
    (tmp_path / "alias.h5").symlink_to(alone)
    first = made(tmp_path, "first.h5", ("second", "second.h5", "/"), ("hard", "hard.h5", "/"))
    second = made(tmp_path, "second.h5", ("first", "first.h5", "/"), ("third", "third.h5", "/g"))
    made(tmp_path, "third.h5", ("first", "first.h5", "/g"), ("second", "second.h5", "/"))
    os.link(first, tmp_path / "hard.h5")
    return [alone, first, second]


def test_visititems_is_h5pys(circles: list[Path]) -> None:
    for path in circles:
        expected: list[str] = []
        met: list[str] = []
        with h5py.File(path) as theirs, hs.open(path) as ours:
            theirs.visititems(lambda name, _, to=expected: to.append(name))
            ours.visititems(lambda name, _, to=met: to.append(name))
        assert met == expected


def test_each_array_and_group_is_met_once(circles: list[Path]) -> None:
    for path, file_count in zip(circles, (1, 3, 3), strict=True):
        with hs.open(path) as root:
            arrays = [(Path(array.filename).stat().st_ino, array.name) for array in root.walk()]
            assert len(arrays) == len(set(arrays)) == file_count
            assert len(list(root.walk_groups())) == 2 * file_count
            assert all(np.array_equal(array[...], np.arange(3)) for array in root.walk())


def test_files_that_lead_to_each_other_are_let_go(circles: list[Path]) -> None:
    def descriptors() -> list[str]:
        found = (os.path.realpath(one) for one in Path("/proc/self/fd").iterdir())
        return [one for one in found if one.startswith(f"{circles[1].parent}/")]

    before = descriptors()
    for _ in range(5):
        root = hs.open(circles[1])
        assert len(list(root.walk())) == 3
        del root
    assert descriptors() == before


def test_a_closed_file_is_opened_again(circles: list[Path]) -> None:
    root = hs.open(circles[1])
    root["second"].close()
    assert root["second/x"][1] == 1
    root.close()
    with pytest.raises(ValueError, match="closed"):
        root["second"]


def test_commands_and_other_libraries_views_end(circles: list[Path], tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    for number, path in enumerate(circles):
        for command in (["info"], ["info", "--json"], ["verify"]):
            assert CliRunner().invoke(app, [*command, str(path)]).exit_code == 0
        assert "again" in repr(hs.open(path))
        groups = xarray.open_groups(path, engine="hyperslab")
        assert {"/", "/g"} <= set(groups)
        assert all(np.array_equal(group["x"], np.arange(3)) for group in groups.values())
        assert set(ZarrStore(hs.open(path))._nodes) >= {"", "x", "g", "g/x"}
        index = hs.index(path)
        index.save(tmp_path / f"{number}.hs")
        index.save(tmp_path / f"{number}.json")
        assert {array.name for array in hs.open(tmp_path / f"{number}.json").walk()} >= {"/x", "/g/x"}
        assert [array.name for array in hs.open([path], concat=0).walk()]


def test_another_files_arrays_do_not_take_the_names_of_ours(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = [7, 8]
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["x"] = [1, 2]
        file["there"] = h5py.ExternalLink("other.h5", "/")
    nodes = ZarrStore(hs.open(path))._nodes
    assert nodes["x"][0] == 1
    assert nodes["there/x"][0] == 7
    xarray = pytest.importorskip("xarray")
    groups = xarray.open_groups(path, engine="hyperslab")
    assert groups["/"]["x"].values.tolist() == [1, 2]
    assert groups["/there"]["x"].values.tolist() == [7, 8]


def test_files_that_lead_to_ever_more_files_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_file, "MOST_LINKED_FILES", 5)
    for number in range(9):
        made(tmp_path, f"{number}.h5", ("next", f"{number + 1}.h5", "/"))
    with hs.open(tmp_path / "0.h5") as root:
        assert len(list(root.walk())) == 5
        with pytest.raises(Unsupported, match="more than 5"):
            root["/".join(["next"] * 6)]


def test_soft_links_in_a_circle_and_virtual_arrays_of_themselves(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["a"], file["b"] = h5py.SoftLink("/b"), h5py.SoftLink("/a")
        file["out"] = h5py.ExternalLink("a.h5", "/out")
        layout = h5py.VirtualLayout((3,), "i4")
        layout[:] = h5py.VirtualSource("a.h5", "own", (3,))
        file.create_virtual_dataset("own", layout, fillvalue=4)
    with hs.open(path) as root:
        for name in ("a", "out"):
            with pytest.raises(KeyError, match="circle"):
                root[name]
        assert [array.name for array in root.walk()] == ["/own"]
        with pytest.raises((DamagedFile, Unsupported)):
            root["own"][...]


def test_what_is_pickled_together_shares_one_open_file_again(tmp_path: Path) -> None:
    path = made(tmp_path, "a.h5", ("other", "b.h5", "/"))
    made(tmp_path, "b.h5")
    with hs.open(path) as root:
        group, array, far = pickle.loads(pickle.dumps((root["g"], root["x"], root["other/x"])))
    assert group.opened.root == array._file.root
    assert far.filename == str(tmp_path / "b.h5")
    assert [one[...].tolist() for one in (array, far)] == [[0, 1, 2]] * 2
    assert list(group) == ["self", "up", "x"]
