"""The site: its reference pages say what the code says, and it builds without network and without warnings."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hyperslab
from hyperslab.cli.commands import ENTRIES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site() -> dict[str, object]:
    return runpy.run_path(str(ROOT / "docs" / "site_pages.py"))


DOCSTRING = """Says it.

Parameters
----------
name : str | None
    Who,
    and where.
size : int
    How large.

Raises
------
KeyError
    Nobody.
"""
MARKDOWN = """Says it.

**Parameters**

- `name` (`str | None`): Who, and where.
- `size` (`int`): How large.

**Raises**

- `KeyError`: Nobody.
"""


def test_docstrings_become_markdown(site) -> None:
    assert site["markdown_of"](DOCSTRING) == MARKDOWN


def test_every_public_name_is_in_the_reference(site) -> None:
    page = site["python_page"]()
    for name in hyperslab.__all__:
        if not name.startswith("_"):
            section = re.search(rf"^## hyperslab\.{name}\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
            assert section, name
            assert len(section[1].split()) > 5, f"{name} has no docstring"


def test_every_command_and_option_is_in_the_reference(site) -> None:
    page = site["commands_page"]()
    for name in ENTRIES:
        assert f"\n## hyperslab {name}\n" in page
    assert "### hyperslab versions diff" in page
    assert "`--verify`" in page


@pytest.mark.slow
def test_the_site_builds_strictly_and_asks_nobody(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="not installed: pip install 'hyperslab[docs]'")
    mkdocs = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(mkdocs, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        loaded = re.findall(r"<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=\"?([^\s\">]+)", page.read_text())
        assert [one for one in loaded if re.match(r"(https?:)?//", one)] == [], page.name
    shutil.rmtree(tmp_path / "site")
