"""How HDF5 is set up for a workload: its version, its chunk cache, and the oldest version that can read its files."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt, field_validator

from hyperslab.declared import Declared
from hyperslab.errors import MissingLibrary
from hyperslab.formats import availability
from hyperslab.model.libraries import Hdf5

NEWEST = "2.0.0"


class Hdf5Settings(Declared):
    """HDF5's version and settings. What is not given has the default of the version."""

    version: str | None = Field(default=None, description="such as 1.14; by default the installed version")
    rdcc_nbytes: NonNegativeInt | None = Field(default=None, description="size of the chunk cache of an array in bytes")
    rdcc_nslots: PositiveInt | None = Field(default=None, description="slots of its hash table")
    rdcc_w0: float | None = Field(default=None, ge=0, le=1, description="how early complete chunks are evicted")
    libver: Literal["earliest", "v108", "v110", "v112", "v114", "v200", "latest"] | None = Field(
        default=None, description="the oldest version that can read the file; it decides the chunk index"
    )

    @field_validator("version", mode="before")
    @classmethod
    def _is_quoted(cls, version: object) -> object:
        if isinstance(version, int | float):
            raise ValueError(f'{version} is a number, and 1.10 would be 1.1: write the version in quotes, as in "1.14"')
        return version

    @field_validator("version")
    @classmethod
    def _is_version(cls, version: str | None) -> str | None:
        if version is not None and not all(part.isdecimal() for part in version.split(".")):
            raise ValueError(f"{version!r} is not a version of HDF5; write 1.14 or 2.0.0")
        return version

    def updated(self, other: Hdf5Settings) -> Hdf5Settings:
        """These settings, except where the other ones say something."""
        return self.model_copy(update=other.model_dump(exclude_none=True))

    def library(self) -> Hdf5:
        """The library with these settings."""
        made = Hdf5.of_version(self.version or installed_version() or NEWEST)
        return replace(
            made,
            chunk_cache_nbytes=made.chunk_cache_nbytes if self.rdcc_nbytes is None else self.rdcc_nbytes,
            chunk_cache_slots=self.rdcc_nslots or made.chunk_cache_slots,
            w0=made.w0 if self.rdcc_w0 is None else self.rdcc_w0,
        )

    @property
    def is_before_2(self) -> bool:
        """Whether the version is older than 2.0."""
        return int((self.version or installed_version() or NEWEST).split(".")[0]) < 2


@cache
def installed_version() -> str | None:
    """The version of HDF5 that h5py has, or None if h5py is not installed."""
    library = availability("hdf5")
    return None if isinstance(library, MissingLibrary) else dict(library.parts).get("HDF5")
