"""A pytest plugin that makes `versioned_hdf5` mean `hyperslab.versions.compat`, and records the outcome of each test.

Each line of the file that `PEER_OUTCOMES` names is a test, whether it passed, and its output if it did not. The modules
in `PEER_LEFT_OUT` are not run; of each `PEER_SAMPLE` other tests, one is. Names that compat does not have are stand-ins
that raise an error on use, so that a test module can be imported, and only the tests that need internals fail.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import h5py
import numpy as np
import pytest

NAME, OURS = "versioned_hdf5", "hyperslab.versions.compat"
# Not in versioned-hdf5, but in the environment that its tests expect.
CONSTANTS = {"H5PY_VERSION": h5py.version.version_tuple[:2], "HAS_NPYSTRINGS": hasattr(np.dtypes, "StringDType")}


class Private:
    """A name of versioned-hdf5's internals."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError(f"{self.name} is private to versioned-hdf5")


class Alias(MetaPathFinder, Loader):
    """Finds `versioned_hdf5`, and every module in it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return spec_from_loader(name, self, is_package=True) if name.split(".")[0] == NAME else None

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        try:
            ours: ModuleType | None = import_module(OURS + name.removeprefix(NAME))
        except ModuleNotFoundError:
            ours = None

        def found(attribute: str) -> Any:
            if attribute.startswith("__") and attribute != "__version__":
                raise AttributeError(attribute)
            return getattr(ours, attribute, CONSTANTS.get(attribute, Private(f"{name}.{attribute}")))

        module.__getattr__ = found  # type: ignore[method-assign]


sys.meta_path.insert(0, Alias())


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return True if collection_path.name in os.environ["PEER_LEFT_OUT"].split() else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run one test of `PEER_SAMPLE`; the others are recorded as left out."""
    every = int(os.environ["PEER_SAMPLE"])
    left_out = [item for place, item in enumerate(items) if place % every]
    for item in left_out:
        record(item.location, item.nodeid, "left out", "")
    items[:] = items[::every]
    config.hook.pytest_deselected(items=left_out)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" and report.passed:
        return
    record(report.location, report.nodeid, report.outcome, report.longreprtext[-3000:])


def record(location: tuple[str, int | None, str], node: str, outcome: str, said: str) -> None:
    name = f"{Path(location[0]).name}::{node.split('::', 1)[1]}"
    with Path(os.environ["PEER_OUTCOMES"]).open("a") as outcomes:
        outcomes.write(json.dumps([name, outcome, said]) + "\n")
