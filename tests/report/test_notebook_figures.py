"""What notebooks show of results: a table and figures, well formed and escaped, whatever a file says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab as hs
from checked_html import Checked
from hyperslab import needed
from hyperslab.audit import Question, audit_file
from hyperslab.model import StoreProfile, Workload
from hyperslab.report import notebooks

sys.path.append(str(Path(__file__).parents[1] / "model"))
from made_up import made_up_store_profile

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")

HOSTILE = "<script>alert('x')&"
DRAWN = {"div", "b", "details", "summary", "table", "tr", "th", "td", "h3", "h4", "figure", "figcaption"}
DRAWN |= {"svg", "rect", "line", "text", "title", "circle", "polyline", "img"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notebooks")
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset(HOSTILE, data=np.zeros((60, 30, 20), "f4"), chunks=(1, 30, 20), compression="gzip")
    return folder


@pytest.fixture(scope="module")
def profile(folder: Path) -> StoreProfile:
    return made_up_store_profile(folder, slow=3.0)


@pytest.fixture(scope="module")
def trace(folder: Path) -> hs.Trace:
    with hs.record() as recorded, h5py.File(folder / "a.h5") as file:
        for row in range(20):
            file[HOSTILE][:, row, 3]
    return recorded


@pytest.fixture(scope="module")
def survey(folder: Path) -> Iterator[hs.VersionedFile]:
    with hs.VersionedFile(folder / "v.h5", "w") as file:
        with file.stage_version("one") as group:
            group.create_dataset("<b>x", data=np.zeros((10, 4)), chunks=(5, 4))
        with file.stage_version("<i>two") as group:
            group["<b>x"][2] = 1
            group.attrs["<u>by"] = "me"
        yield file


def shown(made: Any) -> Checked:
    page = Checked(made._repr_html_())
    assert set(page.tags) <= DRAWN, "something of the file became a tag"
    assert "nothing is drawn" not in page.text
    return page


def test_a_trace_draws_when_it_read_and_which_chunks_it_touched(trace: hs.Trace) -> None:
    page = shown(trace)
    assert page.tags.count("svg") == 2
    for said in ("20 accesses", f"a.h5:/{HOSTILE}", "How often the program touched", "Time in reads"):
        assert said in page.text, said
    assert shown(hs.Trace()).tags.count("svg") == 0


def test_a_long_trace_draws_no_chunks(trace: hs.Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebooks, "MOST_ACCESSES", 19)
    assert shown(trace).tags.count("svg") == 1


def test_advice_shows_its_verdict_ranking_and_figures(trace: hs.Trace, profile: StoreProfile) -> None:
    found = hs.advise(trace, store_profile=profile, keep="hdf5", max_chunk=1 << 20)
    page = shown(found)
    assert {"table", "svg"} <= set(page.tags)
    for said in (found[0].verdict, HOSTILE, "95 % interval", "Seconds against size", "today"):
        assert said in page.text, said
    assert shown(found[0]).text == page.text
    assert found[0].verdict in repr(found)
    assert len(repr(found)) < 500


def test_predictions_show_seconds_and_draw_them(profile: StoreProfile, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Workload.model_validate({"array": {"shape": [500, 20]}, "accesses": [{"select": "random-rows"}]})
    found = hs.predict(asked, [(50, 5), (500, 1)], store_profile=profile)
    page = shown(found)
    assert page.tags.count("tr") == 1 + len(found)
    assert "img" in page.tags
    assert "500x1" in page.text
    assert "hdf5 50x5" in repr(found)
    assert shown(found[0]).tags.count("tr") == 2
    monkeypatch.setattr(needed, "is_there", lambda name: name != "matplotlib")
    without = Checked(found._repr_html_())
    assert "img" not in without.tags
    assert "nothing is drawn: a figure needs matplotlib: pip install 'hyperslab[report]'" in without.text


def test_what_files_with_versions_answer_is_shown(survey: hs.VersionedFile) -> None:
    for made, words in (
        (survey, ("<i>two", "current")),
        (survey.log(), ("2 versions", "<i>two *", "changed <b>x", "320 B")),
        (survey.stats(), ("<i>two", "shared with parent", "in the file")),
        (survey.diff("one"), ("one → <i>two", "<b>x", "10 × 4", "<u>by")),
        (survey.diff("one", "one"), ("they are the same",)),
        (survey.verify(), ("no damage", "2 versions, ")),
    ):
        text = shown(made).text
        for said in words:
            assert said in text, (type(made).__name__, said)


def test_damage_is_listed(survey: hs.VersionedFile) -> None:
    from hyperslab.versions.inspect.verify import Damage, Verification

    found = Verification("a.h5", unproved={"<i>two": "why"})
    found.add(Damage("<b>chunk differs", "x", ("one", "<i>two"), (3, 0)))
    text = shown(found).text
    for said in ("1 damage", "<b>chunk differs", "one, <i>two", "(3, 0)", "<i>two is not proved: why"):
        assert said in text, said


def test_conversions_references_and_audits_are_shown(folder: Path, profile: StoreProfile) -> None:
    done = hs.convert(folder / "a.h5", folder / "b.h5", chunks="60,30,1")
    index = hs.index(folder / "a.h5")
    audit = audit_file(str(folder / "a.h5"), Question())
    for made, words in (
        (done, ("b.h5", "144 kB", "verified by")),
        (index, ("Index", "1 archive", "a.h5")),
        (index.save(folder / "a.hs"), ("hyperslab.Saved", "a.hs", "60")),
        (audit, ("a.h5", audit.reason, HOSTILE)),
        (profile, ("local disk", "hdf5, zarr")),
    ):
        text = shown(made).text
        for said in words:
            assert said in text, (type(made).__name__, said)
    assert repr(index) == "<hyperslab.Index of 1 archive>"
    assert "local disk" in repr(profile)


def test_a_repair_is_shown() -> None:
    from hyperslab.versions.rewrite.repairing import Loss, Repair

    text = shown(Repair(Path("r.h5"), ["one"], [Loss("<i>two", "/x", "gone")])).text
    assert "<i>two: /x: gone" in text
