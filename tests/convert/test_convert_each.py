"""`convert -o FOLDER` writes several files, each by itself: one that fails is named and leaves the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner, Result

import hyperslab as hs
from hyperslab.cli import app
from hyperslab.conversion.several import convert_each
from hyperslab.errors import UsageError

runner = CliRunner()
LIKE = {"arrays": {"x": {"chunks": [2, 3]}, "only-in-b": {"chunks": [4]}}}


def convert(*words: object) -> Result:
    return runner.invoke(app, ["convert", *map(str, words)])


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    for name in "abc":
        with h5py.File(f"{name}.h5", "w") as file:
            file.create_dataset("x", data=np.arange(60.0).reshape(6, 10), chunks=(6, 1))
            if name == "b":
                file.create_dataset("only-in-b", data=np.arange(8), chunks=(1,))
    Path("like.json").write_text(json.dumps(LIKE))
    return ["a.h5", "b.h5", "c.h5"]


def check(name: str) -> None:
    with hs.open(Path("better", name)) as made, hs.open(name) as source:
        assert made["x"].chunks == (2, 3)
        np.testing.assert_array_equal(made["x"][...], source["x"][...])


def test_each_file_is_written_under_its_own_name(files: list[str]) -> None:
    done = convert(*files, "-o", "better", "--like", "like.json")
    assert done.exit_code == 0, done.output
    for name in files:
        check(name)
        assert f"better/{name}: " in done.stdout
    assert done.stdout.count("verified by checksum") == 3
    with hs.open("better/b.h5") as made:
        assert made["only-in-b"].chunks == (4,), "an array that not all of them have"


@pytest.mark.parametrize("harm", ["cut", "missing", "not an archive"])
def test_one_that_fails_is_named_and_leaves_the_others(files: list[str], harm: str) -> None:
    broken = Path("b.h5")
    content = broken.read_bytes()
    broken.unlink()
    if harm != "missing":
        broken.write_bytes(content[: len(content) // 2] if harm == "cut" else b"text")
    done = convert(*files, "-o", "better", "--chunks", "x:2,3", "--json")
    assert done.exit_code == 1
    said = json.loads(done.stdout)
    assert [bool(one["error"]) for one in said] == [False, True, False]
    assert "b.h5 failed: " in done.stderr
    assert "1 of 3 files failed; the others are written" in done.stderr
    check("a.h5")
    check("c.h5")
    assert sorted(path.name for path in Path("better").iterdir()) == ["a.h5", "c.h5"]
    # Mended, the same command with --resume writes what is missing, and leaves what is there.
    broken.write_bytes(content)
    before = Path("better/a.h5").stat().st_mtime_ns
    again = convert(*files, "-o", "better", "--chunks", "x:2,3", "--resume")
    assert again.exit_code == 0, again.output
    assert "better/a.h5: there already" in again.stdout
    assert Path("better/a.h5").stat().st_mtime_ns == before
    check("b.h5")


def test_what_is_there_is_not_replaced_unless_you_say_so(files: list[str]) -> None:
    assert convert(*files, "-o", "better", "--like", "like.json").exit_code == 0
    refused = convert(*files, "-o", "better", "--like", "like.json")
    assert refused.exit_code == 1
    assert refused.stderr.count("exists: choose another name") == 3
    assert convert(*files, "-o", "better", "--like", "like.json", "--overwrite").exit_code == 0


def test_another_format_has_its_own_suffix(files: list[str]) -> None:
    assert convert("a.h5", "c.h5", "-o", "better", "--format", "zarr3").exit_code == 0
    assert sorted(path.name for path in Path("better").iterdir()) == ["a.zarr", "c.zarr"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.h5", "sub/a.h5", "-o", "better"], "a.h5 and sub/a.h5 would both be written to better/a.h5"),
        (["a.h5", "b.txt", "-o", "better"], "the format is not clear"),
        (["a.h5", "-o", "no/such"], "there is no folder no to make such in"),
        (["a.h5", "-o", "like.json"], "like.json cannot be made a folder"),
        (["a.h5", "c.h5", "-o", "better", "--like", "like.json"], "none of the files has the array 'only-in-b'"),
        (["a.h5", "c.h5", "-o", "better", "--concat", "0"], "-o is then that file"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(
    files: list[str], words: list[str], said: str
) -> None:
    done = convert(*words)
    assert isinstance(done.exception, UsageError)
    assert said in str(done.exception)
    assert not Path("better").exists()


def test_from_python_it_says_what_became_of_each(files: list[str]) -> None:
    options: dict[str, Any] = {"chunks": {"x": "2,3"}}
    outcomes = list(convert_each([*files, "gone.h5"], "better", **options))
    assert [one.error is None for one in outcomes] == [True, True, True, False]
    assert [one.done.array_count for one in outcomes if one.done is not None] == [1, 2, 1]
    assert outcomes[3].target == Path("better/gone.h5")
