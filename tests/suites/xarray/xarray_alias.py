"""A pytest plugin with which xarray reads netCDF with the engine "hyperslab" if a test asks for one of its own engines.

xarray's own engines still write. Without `HYPERSLAB_ALIAS` the tests run unchanged.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from xarray.backends import api, plugins

REPLACED = ("netcdf4", "h5netcdf", "scipy")


class _Plugins:
    """xarray's `plugins`, with our engine in place of the replaced ones."""

    def __getattr__(self, name: str) -> Any:
        return getattr(plugins, name)

    @staticmethod
    def get_backend(engine: Any) -> Any:
        return plugins.get_backend("hyperslab" if engine in REPLACED else engine)


def pytest_configure(config: pytest.Config) -> None:
    """Take the place of the engines."""
    if os.environ.get("HYPERSLAB_ALIAS"):
        api.plugins = _Plugins()
