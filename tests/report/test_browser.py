"""The page in a real browser: it draws, its select switches the case, and no error goes unnoticed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hyperslab.bench.results import Run
from hyperslab.report.page import write_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--enable-logging=stderr",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1400,2400",
    "--virtual-time-budget=8000",
)  # fmt: skip
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt install chromium")

# Act as a reader: choose an option of a select.
CHOOSE = """<script>
const choose = (name, value) => {
  const select = document.querySelector(`[data-choice="${name}"]`);
  select.value = value;
  select.dispatchEvent(new Event("change"));
};
%s
</script></body>"""


def _open(page: Path, profile: Path, *more: str) -> tuple[str, list[str]]:
    """The document after its scripts ran, and the console's messages."""
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", *more, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def _with_hand(page: Path, to: Path, actions: str) -> Path:
    to.write_text(page.read_text().replace("</body>", CHOOSE % actions))
    return to


def _pane(document: str, name: str) -> str:
    found = re.search(rf'<figure id="figure-{name}".*?</figure>', document, re.S)
    assert found
    return found[0]


@pytest.fixture(scope="module")
def page(run: Run) -> Path:
    return write_page(run)


@pytest.mark.slow
def test_it_draws_without_an_error_and_can_be_looked_at(page: Path, tmp_path: Path):
    picture = tmp_path / "page.png"
    document, console = _open(page, tmp_path / "profile", "--dump-dom", f"--screenshot={picture}")
    assert console == []
    bars = _pane(document, "bars")
    assert bars.count('class="point"') >= 6
    assert 'class="main-svg"' in bars
    for needed in (
        "n = 7",
        "95 % bootstrap interval",
        "Cache state:",
        "Method: fair",
        "Conditions:",
        "Test CPU 9000",
        "µs",
    ):
        assert needed in bars
    assert 'data-drawn="common-io-1 fair"' in document
    from matplotlib.image import imread

    pixels = imread(picture)
    assert len({tuple(pixel) for pixel in pixels[::7, ::7, :3].reshape(-1, 3).tolist()}) > 50


@pytest.mark.slow
def test_the_select_switches_the_case_and_the_filter_hides_other_verdicts(page: Path, tmp_path: Path):
    clicked = "document.querySelector('button[data-verdict=reverses]').click();"
    acted = _with_hand(page, tmp_path / "acted.html", 'choose("case", "common-io-21");' + clicked)
    document, console = _open(acted, tmp_path / "profile", "--dump-dom")
    assert console == []
    assert 'data-drawn="common-io-21 fair"' in document
    assert "scatterlayer" in _pane(document, "scale")
    assert "both axes logarithmic" in _pane(document, "scale")
    assert re.search(r'<article class="answer" data-case="common-io-1" hidden', document)
    assert not re.search(r'<article class="answer" data-case="common-io-21" hidden', document)
    assert re.search(r'<tr data-verdict="holds" hidden', document)
    assert not re.search(r'<tr data-verdict="reverses" hidden', document)


@pytest.mark.slow
def test_published_curves_name_their_statistic_and_faults(page: Path, tmp_path: Path):
    chosen = 'choose("case", "formats-2002-W1"); choose("method", "published");'
    acted = _with_hand(page, tmp_path / "acted.html", chosen)
    document, console = _open(acted, tmp_path / "profile", "--dump-dom")
    assert console == []
    speed = _pane(document, "speed")
    assert "best of the trials" in speed
    assert "its faults included" in speed
    assert "decoded MB/s" in speed


def test_an_error_would_be_seen(page: Path, tmp_path: Path):
    """The check for console errors can fail."""
    acted = _with_hand(page, tmp_path / "acted.html", 'throw new Error("seen");')
    _, console = _open(acted, tmp_path / "profile", "--dump-dom")
    assert any("seen" in line for line in console)


# A case with a long title, and how far the widest thing reaches beyond the screen.
LONG_TITLE = """<script>
for (const select of document.querySelectorAll("select")) {
  select.options[0].textContent = "a title that goes on and on, ".repeat(4);
}
addEventListener("load", () => {
  const rights = [...document.querySelectorAll("select, figure")].map((part) => part.getBoundingClientRect().right);
  const beyond = Math.max(document.documentElement.scrollWidth, ...rights) - innerWidth;
  document.title = `beyond=${Math.round(beyond)} width=${innerWidth}`;
});
</script></body>"""


WIDTHS = (1280, 390)


@pytest.mark.slow
def test_nothing_reaches_beyond_the_screen(page: Path, tmp_path: Path):
    copy, outer = tmp_path / "page.html", tmp_path / "outer.html"
    allowed = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    copy.write_text(allowed.replace("</body>", LONG_TITLE))
    # A headless window is at least 500 pixels wide, so the page is put into a frame of each asked width.
    frames = "".join(
        f'<iframe src="{copy.as_uri()}" width="{width}" height="2000" style="border:0"></iframe>' for width in WIDTHS
    )
    outer.write_text(
        f"<body>{frames}<script>onload = () => {{ document.body.dataset.said = "
        '[...document.querySelectorAll("iframe")].map((one) => one.contentDocument.title).join("; "); };'
        "</script></body>"
    )
    document, _ = _open(outer, tmp_path / "profile", "--allow-file-access-from-files", "--dump-dom")
    said = re.findall(r"beyond=(-?\d+) width=(\d+)", document)
    assert [int(width) for _, width in said] == list(WIDTHS), document[-500:]
    assert all(int(beyond) <= 0 for beyond, _ in said), said
