"""A pytest plugin that writes the outcome of each test to the file `SUITE_OUTCOMES`, as one line of JSON.

It also writes a line when a test begins, so that the file of a stopped run shows which tests were running.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest


class Recording:
    """Writes each line at once, so that no line is lost if the run is stopped."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def write(self, *said: str) -> None:
        with self.path.open("a") as out:
            out.write(json.dumps(said) + "\n")

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self.write(nodeid, "begun", "")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            crash = getattr(report.longrepr, "reprcrash", None)
            said = str(report.longrepr or "").strip().splitlines()[-1:] if crash is None else str(crash).splitlines()
            self.write(report.nodeid, report.outcome, " ".join(said)[:300])


def pytest_configure(config: pytest.Config) -> None:
    """Register the recorder, but not in workers of pytest-xdist: they send their reports to the main process."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recording(os.environ["SUITE_OUTCOMES"]))
