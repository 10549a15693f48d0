"""An advice file: the layout that each array of a file should get. `advise` writes it, `convert --like` reads it.

{
 "schema": "hyperslab-advice", "version": 1, "source": "ocean.nc",
 "arrays": {
  "/sst": {
   "format": "hdf5", "chunks": [120, 23, 45], "shards": null, "codec": "deflate", "level": 4, "shuffle": true,
   "order": null, "append_axis": null, "keep": false, "reason": "each series touches 1 chunk instead of 120"
  }
 }
}
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError, model_validator

from hyperslab.conversion.advice_reading import checked_advice
from hyperslab.declared import Declared, loc_of
from hyperslab.errors import UsageError
from hyperslab.replacing import replace_with

FileFormat = Literal["hdf5", "netcdf4", "zarr2", "zarr3"]


class AdvisedArray(Declared):
    """The layout that one array should get."""

    format: FileFormat
    chunks: list[PositiveInt] | None = Field(description="the chunk shape; null: the array in one piece")
    shards: list[PositiveInt] | None = Field(default=None, description="the shard shape; only for zarr3")
    codec: str | None = Field(default=None, description="as `hyperslab formats` names it, without its level")
    level: NonNegativeInt | None = Field(default=None, description="of the codec; null: the library's default")
    shuffle: bool = Field(default=False, description="whether the bytes are shuffled before the codec")
    order: list[NonNegativeInt] | None = Field(
        default=None, description="today's axes in the order in which they are stored; null: as today"
    )
    append_axis: NonNegativeInt | None = Field(default=None, description="the stored axis that must be able to grow")
    keep: bool = Field(default=False, description="the advice is to keep this array as it is, in the layout given here")
    reason: str = Field(default="", description="why, in words")

    @model_validator(mode="after")
    def _fits_together(self) -> AdvisedArray:
        lists = [each for each in (self.chunks, self.shards, self.order) if each is not None]
        if len({len(each) for each in lists}) > 1:
            raise ValueError("chunks, shards and order must have the same number of axes")
        if self.chunks is None and (self.codec or self.shards or self.shuffle or self.append_axis is not None):
            raise ValueError("an array in one piece has no codec and no shards, and it cannot grow: give chunks")
        if self.shards is not None and self.format != "zarr3":
            raise ValueError(f"{self.format} has no shards")
        if self.shards and any(shard % chunk for shard, chunk in zip(self.shards, self.chunks or [], strict=True)):
            raise ValueError("each length of shards must be a multiple of that of chunks")
        if self.order is not None and sorted(self.order) != list(range(len(self.order))):
            raise ValueError("order must name every axis once, from 0")
        return self


class AdviceFile(Declared):
    """The advice for the arrays of one file, by their paths."""

    schema_name: Literal["hyperslab-advice"] = Field(default="hyperslab-advice", alias="schema")
    version: Literal[1] = 1
    source: str = Field(description="the file that was asked about")
    arrays: dict[str, AdvisedArray]

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps(self.model_dump(by_alias=True), indent=1, ensure_ascii=False) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the file completely or not at all."""
        replace_with(Path(path), self.to_json().encode())


def load_advice(path: str | Path) -> AdviceFile:
    """Load an advice file.

    Raises
    ------
    UsageError
        The file is missing, or it is not an advice file. The message names the file and the key.
    """
    try:
        return AdviceFile.model_validate(checked_advice(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, loc_of(first))) or "the file"
        said = f"{where}: {first['msg'].removeprefix('Value error, ')}"
        raise UsageError(
            f"{path} is not advice: {said}; `hyperslab advise FILE -o {path}` writes such a file"
        ) from error
