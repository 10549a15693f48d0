"""A plugin of pytest: references that VirtualiZarr's tests write are opened by the engine "hyperslab".

xarray's engine "kerchunk" is replaced; stores of zarr-python are read by the codec pipeline that the environment names.
Without `HYPERSLAB_ALIAS` the tests run as VirtualiZarr has them. In both runs the data set of xarray's tutorial is the
file `SUITE_AIR`, because there is no network.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
import xarray
from xarray.backends import api, plugins


class _Plugins:
    """xarray's `plugins`, where the replaced engine is ours."""

    def __getattr__(self, name: str) -> Any:
        return getattr(plugins, name)

    @staticmethod
    def get_backend(engine: Any) -> Any:
        return plugins.get_backend("hyperslab" if engine == "kerchunk" else engine)


def pytest_configure(config: pytest.Config) -> None:
    """Take the place of the engine and of the tutorial."""
    if os.environ.get("HYPERSLAB_ALIAS"):
        api.plugins = _Plugins()
    air = os.environ.get("SUITE_AIR")
    if air:
        xarray.tutorial.open_dataset = lambda name, **options: xarray.open_dataset(air, **options)
