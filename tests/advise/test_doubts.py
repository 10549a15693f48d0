"""Where a price may be wrong, every command says so and why: what was measured, the machine, the file, the profile."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made_up import made_up_store_profile, with_codecs
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.advise.doubts import assumed
from hyperslab.cli import app
from hyperslab.model import Layout
from hyperslab.model.installed import zarr_version

h5py = pytest.importorskip("h5py")
runner = CliRunner()


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder with a file, the trace of a program that read its columns, and a store profile."""
    elements = np.add.outer(np.arange(160.0), np.add.outer(np.arange(40.0), np.arange(50.0))).astype("f4")
    with h5py.File(tmp_path / "ocean.h5", "w") as file:
        file.create_dataset("sst", data=elements, chunks=(8, 40, 50), compression="gzip", shuffle=True)
    with hs.record() as trace, h5py.File(tmp_path / "ocean.h5") as file:
        array = file["sst"]
        for row in range(40):
            array[:, row, 7]
    trace.columns["duration_ns"] = np.zeros_like(trace.columns["duration_ns"])  # no test depends on what it took
    trace.save(tmp_path / "run.trace")
    with_codecs(made_up_store_profile(tmp_path), "deflate").save(tmp_path / "profile.json")
    return tmp_path


def counsels(made: Path, *, only_traces: bool = False) -> list[dict[str, Any]]:
    """What each command says of the array, as JSON."""
    file, trace, profile = (str(made / name) for name in ("ocean.h5", "run.trace", "profile.json"))
    commands: list[tuple[list[str], Callable[[Any], Any]]] = [
        (["trace", "show", trace, "--profile", profile], lambda said: said["arrays"][0]["counsel"]),
        (["predict", "--trace", trace, "--profile", profile], lambda said: said["arrays"][0]["counsel"]),
        (["predict", f"{file}:sst", "--trace", trace, "--profile", profile], lambda said: said["counsel"]),
        (["advise", f"{file}:sst", "--trace", trace, "--target", profile], lambda said: said["arrays"][0]["counsel"]),
        (["info", file, "--trace", trace, "--profile", profile], lambda said: said["arrays"][0]["counsel"]),
    ]
    answers = []
    for words, counsel in commands[: 2 if only_traces else 5]:
        done = runner.invoke(app, [*words, "--json"])
        assert done.exit_code == 0, done.output
        answers.append(counsel(json.loads(done.stdout)))
    return answers


def counsel_of(made: Path, *, only_traces: bool = False) -> dict[str, Any]:
    first, *others = counsels(made, only_traces=only_traces)
    assert all(other == first for other in others)
    return first


def measured(made: Path, seconds: float, **program: Any) -> None:
    """Make the trace say that the accesses took so many seconds in all."""
    trace = hs.Trace.open(made / "run.trace")
    durations = trace.columns["duration_ns"] * 0 + round(seconds * 1e9 / len(trace))
    trace.columns = {**trace.columns, "duration_ns": durations}
    trace.program = {**trace.program, **program}
    trace.save(made / "run.trace")


def test_what_was_measured_bears_a_price_out(made: Path) -> None:
    before = counsel_of(made, only_traces=True)
    assert 0 < before["opening_seconds"] < before["seconds_now"]
    measured(made, before["seconds_now"] - before["opening_seconds"])  # a trace times the calls alone
    said = counsel_of(made)
    assert (said["borne_out"], said["doubts"]) == (True, [])


def test_what_openings_take_is_not_compared_with_a_trace_which_does_not_time_them(made: Path) -> None:
    """The loop with `file["sst"][k]` was said to be priced wrongly, because most of its price was for openings."""
    with hs.record() as trace, h5py.File(made / "ocean.h5") as file:
        for row in range(40):
            file["sst"][:, row, 7]
    trace.save(made / "run.trace")
    before = counsel_of(made, only_traces=True)
    measured(made, before["seconds_now"] - before["opening_seconds"])
    assert counsel_of(made, only_traces=True)["borne_out"] is True


def test_a_program_that_found_its_file_in_the_page_cache(made: Path) -> None:
    profile = with_codecs(made_up_store_profile(made), "deflate")
    dear = [
        replace(
            one, each=tuple(replace(c, value=c.value * 1e3) if c.term.phase == "device_read" else c for c in one.each)
        )
        for one in profile.fits
    ]
    replace(profile, fits=tuple(dear)).save(made / "profile.json")
    words = ["predict", "--trace", str(made / "run.trace"), "--profile", str(made / "profile.json"), "--json"]
    (warm,) = json.loads(runner.invoke(app, [*words, "--cache", "page-warm"]).stdout)["arrays"]
    cold = counsel_of(made, only_traces=True)
    assert cold["seconds_now"] > 2 * warm["predicted_seconds"]
    measured(made, warm["predicted_seconds"])
    said = counsel_of(made, only_traces=True)
    assert said["borne_out"] is False
    assert "the program found the file in the page cache; from there, it takes" in said["doubts"][0]
    assert (said["low"], said["high"]) == (cold["low"], cold["high"])


def test_what_nothing_explains_widens_the_interval(made: Path) -> None:
    before = counsel_of(made, only_traces=True)
    measured(made, 100 * (before["seconds_now"] - before["opening_seconds"]))
    said = counsel_of(made, only_traces=True)
    (doubt,) = said["doubts"]
    assert "100 times less: nothing that is known explains it, so the price is unproved: [" in doubt
    assert said["high"] >= 99 * (before["seconds_now"] - before["opening_seconds"])
    assert (said["seconds_now"], said["low"]) == (before["seconds_now"], before["low"])


def test_a_trace_of_another_machine(made: Path) -> None:
    measured(made, 1000.0, machine="a supercomputer")
    said = counsel_of(made)
    assert "run.trace was recorded on another machine (a supercomputer)" in said["doubts"][0]
    assert said["doubts"][1].endswith("times less: it was recorded on another machine")


def test_a_trace_says_on_which_machine_it_was_recorded(made: Path) -> None:
    assert not any("machine" in said for said in counsel_of(made, only_traces=True)["doubts"])
    assert "memory" in hs.Trace.open(made / "run.trace").program["machine"]


def test_a_file_that_was_changed_after_it_was_traced(made: Path) -> None:
    assert not any("changed" in said for said in counsel_of(made, only_traces=True)["doubts"])
    os.utime(made / "ocean.h5", (1_000_000_000, 1_000_000_000))  # as a file that was moved here has it
    assert any("was changed after" in said for said in counsel_of(made, only_traces=True)["doubts"])
    os.utime(made / "ocean.h5", (4_000_000_000, 4_000_000_000))
    said = counsel_of(made, only_traces=True)["doubts"][0]
    assert said.startswith(f"{made / 'ocean.h5'} was changed after run.trace was recorded, at 2096-10-02 07:06:40 UTC")


def test_a_file_that_is_gone(made: Path) -> None:
    made_up_store_profile(made).save(made / "profile.json")  # deflate has no price by itself
    before = counsel_of(made, only_traces=True)
    (made / "ocean.h5").unlink()
    said = counsel_of(made, only_traces=True)
    assert said["unknown"] == []  # what deflate costs was measured while the file was there
    assert said["doubts"][0] == f"{made / 'ocean.h5'} is not there any more: /sst is priced as it was recorded"
    assert said["seconds_now"] == pytest.approx(before["seconds_now"], rel=0.5)
    refused(made, "there is no file")


def test_an_array_that_has_another_shape_now(made: Path) -> None:
    with h5py.File(made / "ocean.h5", "w") as file:
        file["sst"] = np.zeros((3, 4, 5))
    said = counsel_of(made, only_traces=True)["doubts"][0]
    assert "has no /sst as it was recorded any more: it is priced as it was; record your program again" in said
    refused(made, "the file has changed, so record your program again")


def refused(made: Path, why: str) -> None:
    """The commands that are about the file say why they have no answer."""
    file, trace, profile = (str(made / name) for name in ("ocean.h5", "run.trace", "profile.json"))
    for words in (
        ["predict", f"{file}:sst", "--trace", trace, "--profile", profile],
        ["advise", f"{file}:sst", "--trace", trace, "--target", profile],
        ["info", file, "--trace", trace, "--profile", profile],
    ):
        done = runner.invoke(app, words)
        assert done.exit_code != 0
        assert isinstance(done.exception, SystemExit | hs.errors.HyperslabError), done.exception
        assert why in done.output + str(done.exception), (words, done.output, done.exception)


def test_a_store_profile_of_a_busy_machine(made: Path) -> None:
    profile = with_codecs(made_up_store_profile(made), "deflate")
    replace(profile, busy_share=0.6).save(made / "profile.json")
    said = counsel_of(made, only_traces=True)["doubts"][0]
    assert said.startswith("the store profile was made while other programs used 60 % of the processors")


def test_it_is_said_in_words_too(made: Path) -> None:
    measured(made, 1000.0)
    file, trace, profile = (str(made / name) for name in ("ocean.h5", "run.trace", "profile.json"))
    for words in (
        ["trace", "show", trace, "--profile", profile],
        ["predict", "--trace", trace, "--profile", profile],
        ["predict", f"{file}:sst", "--trace", trace, "--profile", profile],
        ["advise", f"{file}:sst", "--trace", trace, "--target", profile],
        ["info", file, "--trace", trace, "--profile", profile],
    ):
        done = runner.invoke(app, words)
        assert done.exit_code == 0, done.output
        assert "nothing that is known explains it" in " ".join(done.stdout.split()), words


@pytest.mark.parametrize("shards", [None, (100,)])
def test_the_zarr_python_of_another_machine_is_named(shards: tuple[int, ...] | None) -> None:
    """Which chunks of a shard it reads by one request depends on its version."""
    summary = SimpleNamespace(program={"machine": "a supercomputer"})
    demands = [SimpleNamespace(name="run.trace", summary=summary)]
    environment = SimpleNamespace(cpu="this one", memory_nbytes=1 << 30)
    pricer: Any = SimpleNamespace(profile=SimpleNamespace(environment=environment), demands=demands)
    today: Any = SimpleNamespace(reader="zarr", layout=Layout((10,), shards))
    said = list(assumed(pricer, today))
    assert len(said) == (shards is not None)
    assert all(f"are counted as those of {zarr_version()}, which is installed here" in one for one in said)
