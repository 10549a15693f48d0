"""What no command may do, whichever it is: hang, or end in a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import plain_install
import pytest

HERE = Path(__file__).parent
# SIGINT arrives when the n-th module is looked for.
INTERRUPTED = """
import os, signal, sys

class Interrupting:
    left = int(sys.argv[1])

    def find_spec(self, name, path=None, target=None):
        Interrupting.left -= 1
        if Interrupting.left == 0:
            os.kill(os.getpid(), signal.SIGINT)

from hyperslab.__main__ import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background has it ignored
sys.meta_path.insert(0, Interrupting())
sys.argv = ["hyperslab", *sys.argv[2:]]
main()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = [1, 2, 3]
    return tmp_path


VALUES = ["pipe", "pipe.zip", "s3://", "/sys/kernel/uevent_seqnum"]
Outcomes = dict[str, list[tuple[str, int, str]]]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What all commands do with each value, from one process that forks: it takes seconds to load them."""
    folder = tmp_path_factory.mktemp("every")
    with h5py.File(folder / "a.h5", "w") as file:
        file["x"] = [1, 2, 3]
    for name in ("pipe", "pipe.zip"):
        os.mkfifo(folder / name)
    given = [str(folder / value) if value.startswith("pipe") else value for value in VALUES]
    command = [sys.executable, str(HERE / "every_command.py"), str(folder), *given, "--closed"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=plain_install.environment(folder))
    found = json.loads(done.stdout)
    return {value: found[name] for value, name in zip([*VALUES, "--closed"], [*given, "--closed"], strict=True)}


@pytest.mark.parametrize("value", VALUES)
def test_each_path_is_a_regular_file_or_a_place(outcomes: Outcomes, value: str) -> None:
    found = outcomes[value]
    assert len(found) > 20
    for line, status, said in found:
        assert status in (1, 2), (line, status, said)
        assert len(said.strip().splitlines()) == 1, (line, said)
        assert "Traceback" not in said
        assert "internal-error" not in said, (line, said)


def test_standard_output_may_be_closed(outcomes: Outcomes) -> None:
    found = outcomes["--closed"]
    assert len(found) > 20
    for line, status, said in found:
        assert status == 1, (line, status, said)
        assert said == "hyperslab: standard output is closed, so nothing can be written to it\n" or "run" in line, (
            line,
            said,
        )
        assert "Traceback" not in said


@pytest.mark.parametrize("count", [1, 10, 60])
@pytest.mark.parametrize("command", ["info", "verify"])
def test_ctrl_c_while_modules_are_imported(folder: Path, command: str, count: int) -> None:
    line = [sys.executable, "-c", INTERRUPTED, str(count), command, str(folder / "a.h5")]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode in (-signal.SIGINT, 130), (done.returncode, done.stderr)
    assert done.stderr in ("", "hyperslab: interrupted\n")
