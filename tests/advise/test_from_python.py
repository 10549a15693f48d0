"""`hyperslab.advise`: from Python, what `hyperslab advise` says on the command line."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.cli import app
from hyperslab.errors import UsageError
from hyperslab.model.store_profile import StoreProfile


@pytest.fixture(scope="module")
def recorded(maps: Path) -> hs.Trace:
    h5py = pytest.importorskip("h5py")
    with hs.record() as trace, h5py.File(maps) as file:
        for row in range(20):
            file["sst"][:, row, 7]
    return trace


def test_it_says_what_the_command_says(
    maps: Path, recorded: hs.Trace, profile: StoreProfile, profile_file: Path, tmp_path: Path
) -> None:
    recorded.save(tmp_path / "run.trace")
    (found,) = hs.advise(f"{maps}:sst", trace=tmp_path / "run.trace", store_profile=profile, keep="hdf5")
    words = ["advise", f"{maps}:sst", "--trace", str(tmp_path / "run.trace"), "--target", str(profile_file), "--json"]
    printed = json.loads(CliRunner().invoke(app, [*words, "--keep", "hdf5"]).stdout)["arrays"][0]
    assert (found.verdict, found.considered) == (printed["verdict"], printed["considered"])
    assert [one.seconds for one in found.options] == [one["seconds"] for one in printed["options"]]
    assert found.counsel is not None
    assert found.counsel.to_dict() == printed["counsel"]


def test_arrays_and_traces_in_memory_are_taken_as_they_are(
    maps: Path, recorded: hs.Trace, profile: StoreProfile
) -> None:
    limits: Any = {"store_profile": profile, "keep": "hdf5", "max_chunk": 1 << 20}
    (by_file,) = hs.advise(maps, trace=recorded, **limits)
    (by_trace,) = hs.advise(recorded, **limits)
    with hs.open(maps) as archive:
        (by_array,) = hs.advise(archive["sst"], trace=[recorded], **limits)
    assert by_file.verdict == by_trace.verdict == by_array.verdict
    assert by_file.array.name == "/sst"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "say what your program does, in one way"),
        ({"like": "maps", "workload": "a.yaml"}, "in one way"),
        ({"like": "mapps"}, "is not known"),
        ({"like": "maps", "append_axis": "tim"}, "is not an axis"),
        ({"like": "maps", "min_chunk": 9, "max_chunk": 8}, "no chunk fits"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    options: dict[str, Any], said: str, maps: Path, profile: StoreProfile
) -> None:
    with pytest.raises(UsageError, match=said):
        hs.advise(f"{maps}:sst", store_profile=profile, **options)


def test_a_trace_of_files_that_are_gone_is_refused(recorded: hs.Trace, profile: StoreProfile) -> None:
    with pytest.raises(UsageError, match="leave `trace` out"):
        hs.advise(recorded, trace=recorded, store_profile=profile)
    with pytest.raises(UsageError, match="no file of the trace is there"):
        hs.advise(hs.Trace(), store_profile=profile)


ORDERS = (
    "import hyperslab as hs",
    "import hyperslab.advise.words, hyperslab as hs",
    "from hyperslab import advise as a",
)


@pytest.mark.parametrize("first", ORDERS)
def test_it_can_be_called_whatever_was_imported_before(first: str) -> None:
    """The package has the name of the function."""
    called = "a" if first.startswith("from") else "hs.advise"
    script = (
        f"{first}\nimport sys\nassert 'hyperslab.advise.answering' not in sys.modules\ntry:\n    {called}('no.h5')\n"
        "except Exception as error:\n    print(type(error).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "NotAStoreProfile\n", done.stderr


def test_it_documents_itself() -> None:
    assert "Parameters" in (inspect.getdoc(hs.advise) or "")
    assert list(inspect.signature(hs.advise).parameters)[:4] == ["source", "trace", "workload", "like"]
    assert "advise" in hs.__all__
