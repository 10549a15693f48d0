"""What a notebook shows and completes: HTML that is well formed and escaped, whatever a file says."""

from __future__ import annotations

import numpy as np
import pytest

import hyperslab as hs
from checked_html import Checked
from hyperslab.archive.views import display_html

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["<script>alert(1)</script>"] = np.arange(4)
        file["deep/er/x"] = np.zeros((4, 4), "f4")
        file["deep/er/x"].attrs["units"] = "<b>m</b>"
        file["deep/again"] = file["deep"]
        file["gone"] = h5py.SoftLink("/nowhere")
        file.attrs.update({f"note{number}": "text" * 100 for number in range(60)})
    return path


def test_html_of_a_group(path) -> None:
    with hs.open(path) as file:
        shown = Checked(file._repr_html_())
        assert set(shown.tags) == {"div", "b", "details", "summary"}, "nothing of the file became a tag"
        for said in ("<script>alert(1)</script>", "x: float32 (4, 4)", "units = <b>m</b>", "again/ (again)", "10 more"):
            assert said in shown.text, said
        assert "nowhere" in shown.text
        assert len(shown.text) < 60 * 300
        assert file._ipython_key_completions_() == list(file)


def test_html_of_an_array(path) -> None:
    with hs.open(path) as file:
        shown = Checked(file["deep/er/x"]._repr_html_())
        assert "/deep/er/x: float32 (4, 4)" in shown.text
        assert "units = <b>m</b>" in shown.text


def test_html_of_many_names_ends(tmp_path) -> None:
    with h5py.File(tmp_path / "many.h5", "w") as file:
        for number in range(display_html.MOST_NODES + 50):
            file.create_group(f"g{number}")
    with hs.open(tmp_path / "many.h5") as file:
        shown = Checked(file._repr_html_())
    assert shown.text.count("/") < display_html.MOST_NODES + 20
    assert "…" in shown.text


def test_html_of_versions(tmp_path) -> None:
    with hs.VersionedFile(tmp_path / "v.h5", "w") as file:
        for name in ("one", "<b>two"):
            with file.stage_version(name) as staged:
                staged.create_dataset(f"x{len(name)}", data=np.zeros(3))
        shown = Checked(file._repr_html_())
        assert "v.h5: 2 versions" in shown.text
        assert shown.text.index("<b>two") < shown.text.index("one", shown.text.index("(UTC)") + 40)
        assert "current" in shown.text
    assert "closed" in Checked(file._repr_html_()).text


def test_html_of_a_trace(path) -> None:
    with hs.record() as trace, h5py.File(path) as file:
        file["deep/er/x"][1:3]
        file["deep/er/x"][0]
    shown = Checked(trace._repr_html_())
    assert "hyperslab.Trace" in shown.text
    assert "a.h5:/deep/er/x" in shown.text
    assert "4 × 4" in shown.text
    assert "2 accesses" in repr(trace)


def test_what_people_guess(path) -> None:
    with hs.open(path, "r") as file, hs.open(path, mode="r") as other:
        assert list(file) == list(other)
    with pytest.raises(hs.errors.UsageError, match="only reads"):
        hs.open(path, "w")
    assert {"open", "Array", "VersionedFile"} <= set(dir(hs))


def test_html_of_a_plan(path) -> None:
    with h5py.File(path, "r+") as file:
        file.create_dataset("rows", shape=(10, 100), chunks=(1, 100), dtype="f4")
        file["rows"][:8] = 1
    with hs.open(path) as file:
        plan = file["rows"].plan((slice(None), 5))
        shown = Checked(plan._repr_html_())
    assert {"table", "summary"} <= set(shown.tags)
    for said in ("hyperslab.ReadPlan", "10 chunks, 2 of them never written", "40 B", "times as many bytes"):
        assert said in shown.text, said
