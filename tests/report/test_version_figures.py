"""The picture of a difference shows every changed element, however few they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import UsageError

pytest.importorskip("matplotlib")
pytest.importorskip("h5py")


def test_shares_are_of_the_elements_of_each_cell(tmp_path: Path) -> None:
    from hyperslab.report.version_figures import draw_difference, shares

    with hs.VersionedFile(tmp_path / "v.h5", "w") as file:
        with file.stage_version("a") as version:
            version.create_dataset("line", data=np.zeros(1003), chunks=(10,))
            version.create_dataset("plane", data=np.zeros((30, 47), "i2"), chunks=(7, 7))
            version.create_dataset("cube", data=np.zeros((3, 3, 3)), chunks=(2, 2, 2))
            version.create_dataset("gone", data=np.zeros(3), chunks=(2,))
        with file.stage_version("b") as version:
            version["line"][500] = 1
            version["line"][900:] = 1
            version["plane"][3:9, 40:] = 1
            version["plane"].resize((40, 45))
            version["cube"][0, 0, 0] = 1
            del version["gone"]
        found = file.diff("a", "b")
        whole = shares(found["line"], 1003)
        assert np.flatnonzero(whole).tolist() == [500, *range(900, 1003)]
        few = shares(found["line"], 100)
        assert few.shape == (100,)
        assert few.max() == 1
        assert few[500 * 100 // 1003] == pytest.approx(1 / 10, abs=0.01)
        plane = np.zeros((40, 47))
        plane[3:9, 40:45] = 1
        np.testing.assert_array_equal(shares(found["plane"], 100), plane)
        for suffix in (".png", ".svg"):
            assert draw_difference(found, tmp_path / f"d{suffix}") == ["cube", "gone"]
            assert (tmp_path / f"d{suffix}").stat().st_size > 1000
        with pytest.raises(UsageError, match="end it with"):
            draw_difference(found, tmp_path / "d.pdf")
        with pytest.raises(UsageError, match="no array with one or two axes"):
            draw_difference(file.diff("a", "a"), tmp_path / "d.png")
