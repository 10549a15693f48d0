"""A plugin of pytest: xarray reads netCDF by the engine "hyperslab" where its tests ask for one of its own engines.

What tests write is written by the library's own engine. Without `HYPERSLAB_ALIAS` the tests run as xarray has them.
"""

from __future__ import annotations

import os
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
    if os.environ.get("HYPERSLAB_ALIAS"):
        api.plugins = _Plugins()
