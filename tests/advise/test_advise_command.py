"""`hyperslab advise` on the command line: what it prints, writes and refuses."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import hyperslab as hs
from hyperslab.advise.verdict import ALIKE
from hyperslab.cli import app
from hyperslab.conversion.advice import AdviceFile
from hyperslab.errors import HyperslabError

runner = CliRunner()
pytestmark = pytest.mark.usefixtures("prepared_workers")


def run(*words: object) -> Result:
    return runner.invoke(app, ["advise", *map(str, words)])


def refused(*words: object) -> str:
    done = run(*words)
    assert isinstance(done.exception, HyperslabError), done.output
    return str(done.exception)


@pytest.fixture(scope="module")
def trace(maps: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    h5py = pytest.importorskip("h5py")
    path = tmp_path_factory.mktemp("traces") / "run.trace"
    with hs.record() as recorded, h5py.File(maps) as file:
        for row in range(30):
            file["sst"][:, row, 7]
    recorded.save(path)
    return path


def test_words_give_a_table_an_advice_file_and_a_page(maps: Path, profile_file: Path, tmp_path: Path) -> None:
    target, page = tmp_path / "advice.json", tmp_path / "advice.html"
    done = run(f"{maps}:sst", "--like", "series", "--target", profile_file, "-o", target, "--html", page)
    assert done.exit_code == 0, done.output
    for said in ("advice: ", "today", "h5py's default chunks", "layouts were considered", "convert"):
        assert said in done.output
    advice = AdviceFile.read(target)
    assert list(advice.arrays) == ["/sst"]
    assert not advice.arrays["/sst"].keep
    check_page(page.read_text())


def check_page(text: str) -> None:
    """It is well formed, runs no scripts and needs no network."""
    open_tags: list[str] = []

    class Checker(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            named = dict(attrs)
            assert tag not in ("script", "link", "iframe", "img")
            assert not any(str(named.get(name, "")).startswith("http") for name in ("src", "href"))
            if tag not in ("meta", "br", "line", "rect", "circle", "polyline"):
                open_tags.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag not in ("line", "rect", "circle", "polyline"):
                assert open_tags.pop() == tag

    Checker().feed(text)
    assert not open_tags
    assert "polyline" in text
    assert re.search(r'<tr class="today">', text)


def test_a_trace_gives_json(maps: Path, trace: Path, profile_file: Path) -> None:
    done = run(f"{maps}:sst", "--trace", trace, "--target", profile_file, "--keep", "any", "--json")
    assert done.exit_code == 0, done.output
    (array,) = json.loads(done.stdout)["arrays"]
    assert array["calls"] == [{"name": "run.trace", "calls": 30, "weight": 1.0, "asked_nbytes": 30 * 160 * 4}]
    known = [one["seconds"] for one in array["options"] if one["seconds"] is not None]
    best = min(one["seconds"] for one in array["options"] if not one["today"] and one["seconds"] is not None)
    slower = [seconds for seconds in known if seconds > best * ALIKE]
    assert slower == sorted(slower), "only those that are alike are ordered by what they change"
    assert known[len(known) - len(slower) :] == slower
    assert len(slower) >= 3
    (today,) = (one for one in array["options"] if one["today"])
    assert today["chunks"] == [1, 40, 50]
    assert any(one["on_the_pareto_front"] for one in array["options"])
    cache = [one for one in array["tips"] if "chunk cache" in one["what"]]
    assert cache == [] or "rdcc_nbytes=" in cache[0]["call"]
    advised = [one["what"] for one in array["tips"] if f"keep the file and {one['what']}:" in array["verdict"]]
    assert array["tip"] == (advised[0] if advised else None)


def test_traces_have_weights(maps: Path, trace: Path, profile_file: Path) -> None:
    once, thrice = (
        json.loads(run(f"{maps}:sst", "--trace", given, "--target", profile_file, "--json").stdout)["arrays"][0]
        for given in (trace, f"{trace}:3")
    )
    assert [one["calls"][0]["weight"] for one in (once, thrice)] == [1.0, 3.0]
    # The codec is measured each time, so the seconds are not exactly three times as many.
    (mine,), (other,) = ([one for one in each["options"] if one["today"]] for each in (once, thrice))
    assert other["requests"] == pytest.approx(3 * mine["requests"])


def test_a_workload_is_priced_too(maps: Path, profile_file: Path, tmp_path: Path) -> None:
    (tmp_path / "accesses.yaml").write_text(
        "array: {shape: [160, 40, 50], dtype: float32}\naccesses:\n  - {select: time-series, count: 10}\n"
    )
    done = run(maps, "--workload", tmp_path / "accesses.yaml", "--target", profile_file, "--json")
    assert done.exit_code == 0, done.output
    (array,) = json.loads(done.stdout)["arrays"]
    assert array["array"] == "/sst"


def options_of(*words: object) -> list[dict[str, Any]]:
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    (array,) = json.loads(done.stdout)["arrays"]
    return [one for one in array["options"] if not one["today"]]


def test_limits_hold_for_every_layout_but_todays(maps: Path, profile_file: Path) -> None:
    asked = (f"{maps}:sst", "--like", "series and maps", "--target", profile_file)
    for one in options_of(*asked, "--keep", "hdf5"):
        assert one["format"] == "hdf5"
    limits = ("--max-files", 1, "--append-axis", 0, "--min-chunk", "16KiB", "--max-chunk", "64KiB")
    found = options_of(*asked, *limits)
    assert len(found) > 2
    for one in found:
        if not one["label"]:  # the libraries' defaults are there to compare
            assert one["files"] == 1
            assert one["chunks"] is not None
            assert 16384 <= 4 * int(np.prod(one["chunks"])) <= 65536


def test_what_does_not_fit_is_said(maps: Path, trace: Path, profile_file: Path, tmp_path: Path) -> None:
    profile = ("--target", profile_file)
    assert "in one way" in refused(maps, *profile)
    assert "in one way" in refused(maps, "--like", "maps", "--trace", trace, *profile)
    assert "there is no file" in refused(tmp_path / "gone.h5", "--trace", trace, *profile)
    assert "there is no file" in refused(tmp_path / "gone.h5", "--like", "maps", *profile)
    assert "there is no trace" in refused(maps, "--trace", tmp_path / "no.trace", *profile)
    assert "has no array" in refused(f"{maps}:nothing", "--like", "maps", *profile)
    assert "no access to /plain" in refused(f"{maps}:plain", "--trace", trace, *profile)
    assert "is not a size" in refused(maps, "--like", "maps", "--memory", "lots", *profile)
    assert "is not a size" in refused(maps, "--like", "maps", "--memory", "9" * 400, *profile)
    assert "is not an axis" in refused(f"{maps}:sst", "--like", "maps", "--append-axis", "²", *profile)
    assert "larger than --max-chunk" in refused(
        f"{maps}:sst", "--like", "maps", "--min-chunk", "2MiB", "--max-chunk", "1MiB", *profile
    )
    assert "write own or any" in refused(maps, "--like", "maps", "--codecs", "all", *profile)
    assert "write hdf5, netcdf or any" in refused(maps, "--like", "maps", "--keep", "csv", *profile)
    assert "at least 1" in refused(maps, "--like", "maps", "--verify", 0, *profile)
    assert "calibrate" in refused(maps, "--like", "maps", "--target", tmp_path / "no.json")
    (tmp_path / "bad.json").write_text("{}")
    assert "not a store profile" in refused(maps, "--like", "maps", "--target", tmp_path / "bad.json")
    assert "must be larger than 0" in refused(maps, "--trace", f"{trace}:0", *profile)


def test_the_trace_of_another_file_names_the_files_that_it_has(
    maps: Path, trace: Path, profile_file: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.h5"
    other.write_bytes(maps.read_bytes())
    said = refused(other, "--trace", trace, "--target", profile_file)
    assert "trace of another file" in said
    assert str(maps) in said


def test_a_file_that_has_changed_since_the_trace_is_refused(trace: Path, profile_file: Path, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "changing.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.zeros((20, 30), "f4")
    with hs.record() as recorded, h5py.File(path) as file:
        file["x"][3]
    recorded.save(tmp_path / "run.trace")
    with h5py.File(path, "w") as file:
        file["x"] = np.zeros((10, 30), "f4")
    said = refused(f"{path}:x", "--trace", tmp_path / "run.trace", "--target", profile_file)
    assert "the file has changed" in said


def test_without_a_store_profile_it_says_how_to_make_one(maps: Path, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert "hyperslab calibrate --quick" in refused(maps, "--like", "maps")


def test_no_layout_within_the_limits_names_the_limits(maps: Path, profile_file: Path) -> None:
    limits = ("--append-axis", 0, "--min-chunk", "10MB", "--target", profile_file)
    said = refused(f"{maps}:sst", "--like", "maps", *limits)
    assert "--min-chunk" in said
    assert "--append-axis" in said


@pytest.mark.slow
def test_verifying_measures_todays_layout_and_the_best(maps: Path, profile_file: Path, tmp_path: Path) -> None:
    done = run(
        f"{maps}:sst", "--like", "series", "--target", profile_file, "--verify", 1, "--scratch", tmp_path, "--json"
    )
    assert done.exit_code == 0, done.output
    (array,) = json.loads(done.stdout)["arrays"]
    measured = [one for one in array["options"] if one["measured_seconds"] is not None]
    assert any(one["today"] for one in measured), array["verified"]
    assert len(measured) >= 2
    assert [one["measured_seconds"] for one in measured] == sorted(one["measured_seconds"] for one in measured)
    assert any("regret" in said for said in array["verified"])
    assert not list(tmp_path.iterdir()), "the scratch folder is removed"


@pytest.mark.slow
def test_a_part_of_a_large_array_is_stated(maps: Path, profile_file: Path, tmp_path: Path) -> None:
    done = run(f"{maps}:sst", "--like", "maps", "--target", profile_file, "--verify", 1, "--scratch", tmp_path,
               "--sample", "200kB", "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    (array,) = json.loads(done.stdout)["arrays"]
    assert any("elements of 160 × 40 × 50" in said for said in array["verified"])
