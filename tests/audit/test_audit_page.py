"""The page of an audit in a real browser: the answer first, and a table that a click sorts."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import audited_files
import pytest

from hyperslab.audit.auditing import audits
from hyperslab.audit.distance import Distance
from hyperslab.audit.judging import Question
from hyperslab.audit.ledger import Ledger
from hyperslab.report.audit_page import HEADER, write_page

Kept = Callable[..., Path]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--enable-logging=stderr",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--virtual-time-budget=4000",
)  # fmt: skip
# Sorts by the requests to open: the most first, then the fewest.
CLICK = "<script>document.querySelectorAll('thead button')[%d].click();</script></body>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, kept: Kept) -> Path:
    folder = tmp_path_factory.mktemp("page")
    names = [str(kept(kind)) for kind in audited_files.MAKERS]
    with Ledger() as ledger:
        for found in audits([*names, str(folder / "<script>alert(1)<script>.nc")], Question()):
            ledger.add(found)
        write_page(folder / "audit.html", ledger, Distance())
    return folder / "audit.html"


def rows(document: str) -> list[list[str]]:
    """The text of the cells of the table."""
    body = document.partition("<tbody>")[2].partition("</tbody>")[0]
    plain = [re.sub(r"<span.*?</span>", "", row, flags=re.S) for row in body.split("</tr>")[:-1]]
    return [[re.sub("<[^>]+>", "", cell).strip() for cell in re.split("</t[hd]>", row)[:-1]] for row in plain]


def test_the_answer_is_first_and_names_are_only_text(page: Path) -> None:
    text = page.read_text()
    assert re.search(r"<h1>Of 9 files, 3 are unreadable, 1 is poor, \d are? ?\w*", text)
    assert text.index("<h1>") < text.index("What is wrong</h2>") < text.index("Files</h2>")
    assert "<script>alert" not in text
    assert not re.search(r"(?:src|href)=\"(?!#)", text)
    made = rows(text)
    assert len(made) == 9
    assert {len(row) for row in made} == {len(HEADER)}
    assert made[0][1] == "unreadable"


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt install chromium")
def test_a_click_on_a_heading_sorts(page: Path, tmp_path: Path) -> None:
    clicked = tmp_path / "clicked.html"
    place = HEADER.index("requests to open")
    clicked.write_text(page.read_text().replace("</body>", CLICK % place))
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", clicked.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr
    assert 'aria-sort="descending"' in done.stdout
    counts = [int(row[place].replace(",", "").replace("–", "-1")) for row in rows(done.stdout)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 30
