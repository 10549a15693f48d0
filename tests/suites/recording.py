"""A plugin of pytest that writes the outcome of each test to the file `SUITE_OUTCOMES`, a line of JSON each.

A line is written when a test begins, too, so that a run that had to be ended says what it was at.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest


class Recording:
    """Writes as the run goes on: what was written is there, however the run ends."""

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
    """Not in the processes of pytest-xdist, whose reports come to the one that started them."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recording(os.environ["SUITE_OUTCOMES"]))
