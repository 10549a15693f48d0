"""The page is one file that fetches nothing, escapes everything and leaves nothing out."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from synthetic import HOSTILE, make_run

from hyperslab.bench.results import Run
from hyperslab.report.page import write_page
from hyperslab.report.page_data import page_data


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.scripts = 0
        self.ids: list[str] = []
        self.text: list[str] = []
        self._in_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.scripts += tag == "script"
        self._in_code = tag in ("script", "style")
        self.ids += [given["id"]] if given.get("id") else []
        for name in ("src", "srcset", "data", "poster"):
            if given.get(name):
                self.fetched.append(given[name] or "")
        if tag in ("link", "base") or (tag == "a" and "//" in (given.get("href") or "")):
            self.fetched.append(str(given))

    def handle_endtag(self, tag: str) -> None:
        self._in_code = False

    def handle_data(self, data: str) -> None:
        if not self._in_code:
            self.text.append(data)


@pytest.fixture(scope="module")
def page(run: Run) -> Path:
    return write_page(run)


@pytest.fixture(scope="module")
def read(page: Path) -> _Reader:
    reader = _Reader()
    reader.feed(page.read_text())
    return reader


def test_nothing_is_fetched(page: Path, read: _Reader):
    assert read.fetched == []
    css = re.search(r"<style>(.*?)</style>", page.read_text(), re.S)
    assert css
    assert "url(" not in css[1]
    assert "@import" not in css[1]
    assert "default-src 'none'" in page.read_text()[:600]


def test_only_our_three_scripts_stand_in_it(read: _Reader):
    assert read.scripts == 3


def test_text_is_escaped(page: Path, read: _Reader):
    text = "".join(read.text)
    assert HOSTILE in text  # shown as it is, once the browser reads the entities
    assert "<script>alert" not in page.read_text()
    assert "HDF5 writes fastest <b>" in text


def test_sections_stand_in_the_promised_order(read: _Reader):
    wanted = ["answer", "figures", "ratios", "verdicts", "method", "environment", "losses", "files"]
    assert [name for name in read.ids if name in wanted] == wanted


def test_the_answer_names_leader_lead_conditions_and_cache(read: _Reader):
    text = " ".join(read.text)
    assert "hdf5 leads: netcdf4 takes" in text
    assert "may be as fast" in text
    assert "avoid csv, " in text
    assert "Use npy (" in text
    assert "matched, cold cache" in text
    assert "unknown" in text  # the read-ahead of this machine


def test_data_hold_every_summary_and_no_false_zero(run: Run):
    document = json.loads(page_data(run))
    rows = [dict(zip(document["columns"], row, strict=True)) for row in document["rows"]]
    words = document["words"]
    assert "null" not in {words[row["format"]] for row in rows}
    csv_creates = [r for r in rows if words[r["format"]] == "csv" and words[r["metric"]] == "create_array"]
    assert csv_creates == []
    assert {words[row["cache"]] for row in rows} == {"new", "cold", "warm", "unknown"}
    assert all(row["n"] == 7 for row in rows)


def test_unknown_intervals_stay_unknown_in_the_data(tmp_path: Path, run: Run):
    few = make_run(tmp_path, trials=[t for t in run.trials if t.trial < 2])
    document = json.loads(page_data(few))
    low = document["columns"].index("low")
    assert {row[low] for row in document["rows"]} == {None}


def test_a_run_without_figures_still_says_why(tmp_path: Path, run: Run):
    empty = make_run(tmp_path, trials=[t for t in run.trials if t.status != "ok"])
    reader = _Reader()
    reader.feed(write_page(empty).read_text())
    assert "figures" not in reader.ids
    assert "No trial was accepted" in " ".join(reader.text)
    assert "killed by signal 9" in " ".join(reader.text)
