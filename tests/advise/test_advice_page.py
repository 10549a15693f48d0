"""The page with the advice in a real browser, on a wide and on a narrow screen."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hyperslab._core import Hyperslab
from hyperslab.advise.advising import advise
from hyperslab.advise.asking import ask
from hyperslab.advise.demand import Demand
from hyperslab.advise.formats import codecs_of, encodings_of
from hyperslab.advise.limits import Limits
from hyperslab.advise.results import ArrayAdvice
from hyperslab.model.store_profile import StoreProfile
from hyperslab.model.workload import Step
from hyperslab.report.advice_answer import answer_of, headline
from hyperslab.report.advice_heat_map import _counts
from hyperslab.report.advice_page import render

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--virtual-time-budget=4000", "--dump-dom")  # fmt: skip
# The page runs no scripts; this one is put into a copy that allows it.
MEASURE = """<script>
const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
const drawn = document.querySelector("figure svg").getBoundingClientRect();
const answer = document.querySelector(".todo pre").getBoundingClientRect();
document.title = `overflow=${wide} figure=${Math.round(drawn.width)}x${Math.round(drawn.height)} `
  + `answer=${Math.round(answer.bottom)}`;
</script></body>"""


@pytest.fixture(scope="module")
def page(maps: Path, profile: StoreProfile) -> str:
    ((array, demands),) = ask(f"{maps}:sst", [], None, "maps and series").arrays
    encodings = encodings_of(array, Limits(), profile)
    found = advise(array, demands, profile, Limits(), codecs_of(array, encodings, profile), encodings)
    return render([str(maps)], [found], "a made-up profile")


def test_names_are_escaped(page: str) -> None:
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert "Which layout for your accesses" in page


def test_the_answer_comes_first(page: str) -> None:
    """The page began with the store profile, and named no command that applies the advice."""
    top = page[page.index("<main>") : page.index('<section id="array-0">')]
    heading, command = re.search(r"<h1>(.*?)</h1>", top), re.search(r"<pre>(.*?)</pre>", top, re.DOTALL)
    assert heading is not None
    assert re.fullmatch(r"Rewrite maps\.h5: [\d,.]+ times as fast", heading[1])
    order = [top.index(part) for part in ("<h1>", 'class="do"', "how much faster", "how sure", "<pre>", "Prices are")]
    assert order == sorted(order)
    assert re.search(r"predicted: [\d,.]+ to [\d,.]+ times \(95 %\)", top)
    assert command is not None
    assert command[1].startswith("hyperslab convert ")
    assert " --chunks sst:" in command[1], "it needs no advice file"
    assert " --codec sst:" in command[1]


@pytest.fixture(scope="module")
def kept(maps: Path, profile: StoreProfile) -> ArrayAdvice:
    """Advice to keep a file, with a tip."""
    ((array, demands),) = ask(f"{maps}:sst", [], None, "series 5").arrays
    traced = [replace(one, library="hdf5", caller="h5py", cache_nbytes=9000, cache_slots=521) for one in demands]
    encodings = encodings_of(array, Limits(), profile)
    found = advise(array, traced, profile, Limits(), codecs_of(array, encodings, profile), encodings)
    found.chosen, found.tip = found.today, found.tips[0]
    found.verdict = "keep the file"
    return found


def test_a_tip_is_an_answer_too(kept: ArrayAdvice) -> None:
    answer = answer_of(kept)
    assert kept.tip is not None
    assert answer.what == f"Keep the file, and {kept.tip.what.replace('`', '')}"
    assert answer.command == kept.tip.call
    assert headline("/data/a b.h5", [answer]).startswith("Keep the file, and ")


def test_nothing_to_gain_is_said_with_how_to_measure(kept: ArrayAdvice) -> None:
    answer = answer_of(replace(kept, tip=None, verdict="keep what you have: nothing is clearly faster"))
    assert (answer.what, answer.command) == ("Keep the file as it is", "")
    assert answer.sure == "by prediction; nothing is clearly faster"
    assert "--verify 3" in answer.hint
    assert headline("a.h5", [answer, answer]) == "Keep the file as it is"


def test_the_command_is_one_that_a_shell_takes(kept: ArrayAdvice) -> None:
    option = next(one for one in kept.options if one.can_be_advised)
    moved = replace(kept, chosen=option, array=replace(kept.array, file="/data/a b.h5"))
    answer = answer_of(moved, "my advice.json")
    assert answer.command.splitlines()[0].startswith("hyperslab convert '/data/a b.h5' better.")
    assert answer.command.splitlines()[0].endswith("--like 'my advice.json'")
    assert headline("/data/a b.h5", [answer, replace(answer, is_worth_it=False)]) == "1 of 2 arrays can be read faster"


def test_both_figures_are_there(page: str) -> None:
    assert "Seconds against size" in page
    assert "Chunks that your calls touch" in page
    assert page.count("<svg") == page.count("</svg>") == 2


def test_the_heat_map_counts_what_is_touched() -> None:
    steps = [Step("read", Hyperslab([row, 0, column], None, [1, 1, 1], [1, 8, 30]))
             for row in (0, 5, 5) for column in (0, 10, 65)]  # fmt: skip
    demand = Demand("made", (6, 8, 100), "f4", steps, weight=2.0)
    found = _counts([demand], (6, 8, 100), (2, 3, 25), (0, 2))
    expected = np.zeros((3, 4))
    for step in steps:
        (row, _, column), lengths = step.selection.start, step.selection.block
        touched = slice(column // 25, (column + lengths[2] - 1) // 25 + 1)
        expected[row // 2, touched] += 2.0 * 3  # three chunks along the axis between
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt install chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_the_screen(page: str, width: int, tmp_path: Path) -> None:
    copy = tmp_path / "page.html"
    allowed = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    # A headless window is at least 500 pixels wide, so the page is put into a frame of the asked width.
    copy.write_text(allowed.replace("</body>", MEASURE))
    outer = tmp_path / "outer.html"
    outer.write_text(
        f'<body style="margin:0"><iframe id="f" src="{copy.as_uri()}" width="{width}" height="2000" style="border:0">'
        "</iframe><script>onload = () => { document.body.dataset.said = "
        'document.getElementById("f").contentDocument.title; };</script></body>'
    )
    command = [str(CHROMIUM), *FLAGS, "--allow-file-access-from-files", f"--user-data-dir={tmp_path / 'profile'}",
               "--window-size=1400,2100", outer.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    said = re.search(r'data-said="overflow=(-?\d+) figure=(\d+)x(\d+) answer=(\d+)"', done.stdout)
    assert said, done.stdout[-2000:]
    overflow, across, down, answer = map(int, said.groups())
    assert overflow <= 0
    assert 200 < across <= width
    assert down > 100
    assert answer < 844, "what to do, how much faster, how sure, and the command are on the first screen"
