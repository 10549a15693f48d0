"""One trace and one file, five commands, one answer: they ask the same counsel, and differ in how much they show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import made_up_store_profile, with_codecs
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.cli import app

runner = CliRunner()


def document(*words: object) -> Any:
    done = runner.invoke(app, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    h5py = pytest.importorskip("h5py")
    folder = tmp_path_factory.mktemp("five")
    elements = np.add.outer(np.arange(160.0), np.add.outer(np.arange(40.0), np.arange(50.0))).astype("f4")
    with h5py.File(folder / "ocean.h5", "w") as file:
        file.create_dataset("sst", data=elements, chunks=(8, 40, 50), compression="gzip", shuffle=True)
    with hs.record() as trace, h5py.File(folder / "ocean.h5", rdcc_nbytes=100_000) as file:
        sst = file["sst"]
        for row in range(40):
            sst[:, row, 7]
    trace.save(folder / "run.trace")
    with_codecs(made_up_store_profile(folder), "deflate").save(folder / "profile.json")
    return {name: folder / name for name in ("ocean.h5", "run.trace", "profile.json")}


def test_five_commands_give_one_answer(made: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    file, trace, profile = made.values()
    monkeypatch.chdir(file.parent)
    answers = [
        document("trace", "show", trace, "--profile", profile)["arrays"][0]["counsel"],
        document("predict", "--trace", trace, "--profile", profile)["arrays"][0]["counsel"],
        document("predict", "ocean.h5:sst", "--trace", trace, "--profile", profile)["counsel"],
        document("advise", "ocean.h5:sst", "--trace", trace, "--target", profile)["arrays"][0]["counsel"],
        document("info", file, "--trace", trace, "--profile", profile)["arrays"][0]["counsel"],
    ]
    first = answers[0]
    assert first["cache"] == "cold"
    assert (first["accesses"], first["priced_accesses"]) == (40, 40)
    assert first["seconds_now"] > 0
    cache = first["tips"][0]
    assert cache["what"] == "open the file with a chunk cache of 2 MiB"
    assert cache["call"] == f"h5py.File({str(file)!r}, rdcc_nbytes=2097152, rdcc_nslots=8191)"
    assert 0 < cache["seconds_then"] < cache["seconds_now"] == first["seconds_now"]
    assert (cache["decoded_now"], cache["decoded_then"]) == (800, 20)
    for other in answers[1:]:
        assert other == first


def test_each_command_shows_the_same_figures_as_others_print(made: dict[str, Path]) -> None:
    """What is in the JSON of the counsel is what the other figures of each command say."""
    file, trace, profile = made.values()
    shown = document("trace", "show", trace, "--profile", profile)
    (array,) = shown["arrays"]
    assert array["predicted_seconds"] == array["counsel"]["seconds_now"]
    assert sum(array["predicted_parts"].values()) == pytest.approx(array["predicted_seconds"])
    assert shown["advice"] == array["counsel"]["tips"]
    (priced,) = document("predict", "--trace", trace, "--profile", profile)["arrays"]
    today = next(one for one in priced["predictions"] if one["library"] == "hdf5")
    assert priced["predicted_seconds"] == today["seconds"] == array["predicted_seconds"]
    (advised,) = document("advise", f"{file}:sst", "--trace", trace, "--target", profile)["arrays"]
    assert [one["seconds"] for one in advised["options"] if one["today"]] == [array["predicted_seconds"]]
    assert advised["tips"][0]["seconds"] == array["counsel"]["tips"][0]["seconds_then"]


def test_what_a_codec_costs_is_measured_once(made: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from hyperslab.advise import formats

    _, trace, profile = made.values()
    words = ("trace", "show", trace, "--profile", profile)
    first = document(*words)
    monkeypatch.setattr(formats, "measure_codecs", lambda *_: pytest.fail("it was measured again"))
    assert document(*words) == first


@pytest.mark.parametrize("content", ["", "[1]", '{"a": [1]}', "nonsense"])
def test_a_damaged_memory_of_codecs_is_measured_again(
    content: str, made: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    remembered = tmp_path / "hyperslab" / "measured-codecs.json"
    remembered.parent.mkdir()
    remembered.write_text(content)
    found = document("trace", "show", made["run.trace"], "--profile", made["profile.json"])
    assert found["arrays"][0]["counsel"]["seconds_now"] > 0
    assert any("deflate:4" in key for key in json.loads(remembered.read_text()))


def test_every_command_says_it_in_words(made: dict[str, Path]) -> None:
    file, trace, profile = map(str, made.values())
    for words in (
        ["trace", "show", trace, "--profile", profile],
        ["predict", f"{file}:sst", "--trace", trace, "--profile", profile],
        ["advise", f"{file}:sst", "--trace", trace, "--target", profile],
        ["info", file, "--trace", trace, "--profile", profile],
    ):
        done = runner.invoke(app, words)
        assert done.exit_code == 0, done.output
        said = " ".join(done.stdout.split())
        assert "pen the file with a chunk cache of 2 MiB" in said, words
        assert "rdcc_nbytes=2097152" in said, words


def test_info_without_a_calibration_counts_chunks(made: dict[str, Path]) -> None:
    done = runner.invoke(app, ["info", str(made["ocean.h5"]), "--trace", str(made["run.trace"])])
    assert done.exit_code == 0, done.output
    assert "seconds unknown: run `hyperslab calibrate` once" in done.stdout
    assert "800 chunks were decoded, 20 would be" in done.stdout
