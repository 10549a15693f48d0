"""A plugin of pytest: xarray reads netCDF by the engine "hyperslab" where its tests ask for one of its own engines.

What tests write is written by the library's own engine. Outcomes go to the file `PEER_OUTCOMES`, a line of JSON each;
without `PEER_ALIAS` the tests run as xarray has them, and only their outcomes are written.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from xarray.backends import api, plugins

REPLACED = ("netcdf4", "h5netcdf", "scipy")


class _Plugins:
    """xarray's `plugins`, where the replaced engines are ours."""

    def __getattr__(self, name: str) -> Any:
        return getattr(plugins, name)

    @staticmethod
    def get_backend(engine: Any) -> Any:
        return plugins.get_backend("hyperslab" if engine in REPLACED else engine)


def pytest_configure(config: pytest.Config) -> None:
    """Take the place of the engines."""
    if os.environ.get("PEER_ALIAS"):
        api.plugins = _Plugins()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write what became of a test."""
    if report.when == "call" or report.outcome != "passed":
        said = str(getattr(report.longrepr, "reprcrash", report.longrepr) or "").splitlines()
        name = "::".join([report.nodeid.split("::")[0].rpartition("/")[2], *report.nodeid.split("::")[1:]])
        line = json.dumps([name, report.outcome, " ".join(said)[:300]])
        with Path(os.environ["PEER_OUTCOMES"]).open("a") as out:
            out.write(line + "\n")
