"""The documentation is true: each page runs from top to bottom, and generated pages are what the code says."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from given_files import GIVEN, give
from pages import LEFT_OUT, PAGES, ROOT, blocks, commands, has_commands, run_page

# A test does not wait for an answer as certain as a reader wants it; tests/matrix/follow_readme.py changes nothing.
LESS_TIME = {"--minutes 3 ": "--minutes 0.5 ", "--scale quick -o maps": "--scale quick --trials 2 -o maps",
             "--method both": "--method both --formats hdf5,csv --trials 1",
             "NUMBER_DATASETS: 16": "NUMBER_DATASETS: 2",
             "shape: [365, 180, 360]": "shape: [32, 180, 360]", "--verify 3": "--verify 1"}  # fmt: skip
MODEL_TESTS = ROOT / "tests" / "model"


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a store profile, which `hyperslab calibrate` would take minutes to measure."""
    sys.path.append(str(MODEL_TESTS))
    from made_up import made_up_store_profile, with_codecs

    from hyperslab.model.store_profile import default_path

    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(folder))
        path = default_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    with_codecs(made_up_store_profile(folder, ("hdf5", "zarr"), slow=3.0), "deflate", "zstd").save(path)
    return folder


def marked(page: Path) -> Any:
    return pytest.param(page, marks=[pytest.mark.slow] if has_commands(page) else [], id=page_id(page))


# Two pages have a scheduler or a bucket to talk to, and one makes pictures, in tests of their own. CI follows README by
# `make readme`, from the line that installs the clone.
ALONE = [page for page in PAGES if page.name not in ("clusters.md", "collections-on-s3.md", "gallery.md", "README.md")]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", [marked(page) for page in ALONE])
def test_page_runs_from_top_to_bottom(page: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(home))  # Python blocks run in this process
    run_page(page, tmp_path, {"XDG_DATA_HOME": str(home)}, **LESS_TIME)


def test_what_a_test_gives_less_time_is_on_a_page() -> None:
    text = "\n".join(block for page in PAGES for _, block in blocks(page))
    assert [option for option in LESS_TIME if option not in text] == []


def test_every_page_that_has_files_of_its_own_exists() -> None:
    assert set(GIVEN) <= {page.name for page in PAGES}


def test_commands_are_left_out_only_if_a_page_has_them() -> None:
    text = "\n".join(block for page in PAGES for _, block in blocks(page))
    assert [begin for begin in LEFT_OUT if begin not in text] == []


def test_a_page_that_is_wrong_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n```python\nassert x == 2\n```\n")
    with pytest.raises(AssertionError):
        run_page(page, tmp_path)
    page.write_text("```console\n$ python -c 'raise SystemExit(3)'\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md: python"):
        run_page(page, tmp_path)
    assert [*commands("console", "$ sudo reboot\nsome output\n$ ls \\\n  -l\n")] == ["ls    -l"]


HIDDEN = re.compile(r"\bseed ?[0-4]\b|\bseeds? N\b|\bDocument [0-9]\b|\bthe seeds\b", re.IGNORECASE)


def test_no_page_speaks_of_what_only_we_know() -> None:
    """Studies are cited by their authors, not by the numbers that they had among us."""
    for page in [*PAGES, *(ROOT / "docs" / "results").glob("*.md")]:
        found = HIDDEN.search(page.read_text())
        assert found is None, f"{page_id(page)}: {found and found[0]}"


def test_generated_pages_are_what_the_code_says() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()
    for path, content in made.items():
        assert path.read_text() == content, f"{path.name} is out of date: make docs"


@pytest.mark.slow
def test_the_gallery_has_the_pictures_that_its_own_blocks_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    made = runpy.run_path(str(ROOT / "docs" / "gallery.py"))["make"](tmp_path)
    linked = re.findall(r"\(images/gallery/([^)]+)\)", (ROOT / "docs" / "gallery.md").read_text())
    assert sorted(made) == sorted(linked)
    assert sorted(made) == sorted(path.name for path in (ROOT / "docs" / "images" / "gallery").iterdir())
    for name, content in made.items():
        root = ElementTree.fromstring(content)
        assert root.tag == "{http://www.w3.org/2000/svg}svg", name
        assert len(list(root.iter())) > 20, name


def test_the_make_targets_that_contributors_are_told_exist() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = re.findall(r"(?:^|`)make ([a-z0-9-]+)", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.MULTILINE)
    assert set(named) <= targets
    assert {"demo", "test", "docs"} <= set(named)


def test_every_sentence_on_security_has_its_test() -> None:
    text = (ROOT / "docs" / "security.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.endswith("| test |")]
    assert all(re.search(r"`tests/[\w/]+\.py::test_\w+` \|$", row) for row in rows)
    assert len(named) >= len(rows) > 0
    for path, name in named:
        assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), flags=re.MULTILINE), f"{path}::{name}"
