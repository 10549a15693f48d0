"""A pytest plugin: `versioned_hdf5` is `hyperslab.versions.compat`, and the tests of `skips.txt` must fail.

Names that compat does not have are stand-ins that raise when they are used, so that a test module can be imported, and
only those of its tests fail which need internals.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
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
SKIPS = Path(__file__).with_name("skips.txt")
# Not of versioned-hdf5, but of the environment that its tests ask for.
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


def skips() -> dict[str, str]:
    """Files and tests that are left out, with their reasons."""
    lines = [line.strip() for line in SKIPS.read_text().splitlines()]
    return {
        name.strip(): reason.strip()
        for name, reason in (line.split(" | ", 1) for line in lines if line and not line.startswith("#"))
    }


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return True if collection_path.name in skips() else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    left_out, used = skips(), set()
    for item in items:
        name = f"{item.path.name}::{item.nodeid.split('::', 1)[1]}"
        for listed in (name, name.split("[")[0]):
            if listed in left_out:
                used.add(listed)
                item.add_marker(pytest.mark.xfail(reason=left_out[listed], strict=True))
    files = {listed for listed in left_out if "::" not in listed}
    missing = left_out.keys() - used - files
    if missing and all(Path(asked).is_dir() for asked in config.args):
        raise pytest.UsageError(f"{SKIPS.name} lists tests that are not there: {', '.join(sorted(missing))}")
    return (yield)
