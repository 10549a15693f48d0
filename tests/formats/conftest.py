"""The formats of the conformance suite: every format of the table, also with options that change what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from hyperslab.errors import MissingLibrary
from hyperslab.formats import FORMATS, availability, make_format
from hyperslab.formats.contract import Format


@dataclass(frozen=True)
class Variant:
    """A format of the table with options."""

    format_name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.format_name, *(f"{key}={value}" for key, value in self.options.items())])


VARIANTS = [
    *(Variant(name) for name in FORMATS),
    Variant("hdf5", {"libver": "latest"}),
    Variant("hdf5", {"libver": "earliest", "rdcc_nbytes": 1 << 16, "rdcc_nslots": 101, "rdcc_w0": 0.5}),
    Variant("hdf5-compound", {"libver": None}),
    Variant("netcdf3", {"variant": "classic"}),
]


@pytest.fixture(params=VARIANTS, ids=str)
def contender(request: pytest.FixtureRequest) -> Format:
    """A format that is installed."""
    found = availability(request.param.format_name)
    if isinstance(found, MissingLibrary):
        pytest.skip(f"not installed: {found}")
    return make_format(request.param.format_name, request.param.options)
