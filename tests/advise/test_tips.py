"""A tip is one function and one line in `TIPS`, as CONTRIBUTING says: then every command has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.advise import tips
from hyperslab.advise.results import Counsel
from hyperslab.advise.tip import Tip
from hyperslab.cli import app
from hyperslab.model.store_profile import StoreProfile

ROOT = Path(__file__).parents[2]
WHAT = "sit on your hands"


def patient_tip(counsel: Counsel) -> Tip | None:
    """What the recipe asks for: a counsel goes in, a tip comes out."""
    return Tip(WHAT, f"time.sleep({len(counsel.demands)})", counsel.now)


@pytest.fixture
def trace(maps: Path, tmp_path: Path) -> Path:
    h5py = pytest.importorskip("h5py")
    with hs.record() as recorded, h5py.File(maps) as file:
        for row in range(10):
            file["sst"][:, row, 7]
    recorded.save(tmp_path / "run.trace")
    return tmp_path / "run.trace"


def test_the_recipe_names_this_file_and_the_list() -> None:
    (row,) = (line for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if line.startswith("| a tip |"))
    assert "`advise/tips.py`" in row
    assert "`TIPS`" in row
    assert "`tests/advise/test_tips.py`" in row
    assert Path(tips.__file__).as_posix().endswith("advise/tips.py")


def test_one_line_gives_a_tip_to_every_command(
    maps: Path, trace: Path, profile: StoreProfile, profile_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tips, "TIPS", (*tips.TIPS, patient_tip))
    page = tmp_path / "page.html"
    for words in (
        ["trace", "show", trace, "--profile", profile_file, "--html", page],
        ["predict", "--trace", trace, "--profile", profile_file],
        ["predict", f"{maps}:sst", "--trace", trace, "--profile", profile_file],
        ["advise", f"{maps}:sst", "--trace", trace, "--target", profile_file, "--keep", "hdf5"],
        ["info", maps, "--trace", trace, "--profile", profile_file],
    ):
        done = CliRunner().invoke(app, [*map(str, words), "--json"])
        assert done.exit_code == 0, done.output
        counsels = [one["counsel"] for one in _arrays(json.loads(done.stdout)) if one.get("counsel")]
        assert [tip["what"] for one in counsels for tip in one["tips"]].count(WHAT) == 1, words
    assert "Sit on your hands" in page.read_text()
    (found,) = hs.advise(f"{maps}:sst", trace=trace, store_profile=profile, keep="hdf5")
    assert WHAT in [tip.what for tip in found.tips]


def _arrays(document: dict[str, object]) -> list[dict[str, dict[str, list[dict[str, str]]]]]:
    listed = document.get("arrays", [document])
    assert isinstance(listed, list)
    return listed
