"""A study: a set of experiments, read from a YAML file, checked, and expanded into cases.

A study file has what its cases share at the top level, and what distinguishes them under `cases:`. A file without cases
is one case. This module only handles data: it measures nothing and imports no format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveInt, field_validator, model_validator

from hyperslab.bench.operations import OPERATIONS, Operation
from hyperslab.declared import Declared, checked, one_of, read
from hyperslab.errors import StudyError
from hyperslab.formats import FORMATS
from hyperslab.meant import NUMBERS, meant, meant_or_choose

STUDIES_ARE_LISTED = "; `hyperslab studies` lists the studies that are included"
Scale = Literal["quick", "small", "paper"]
Cache = Literal["cold", "warm", "unknown"]
Server = Literal["nginx", "versitygw", "moto"]
Shape = list[PositiveInt]


class Conditions(Declared):
    """What every format gets alike: chunk shape and codec chain. Durability and fill values are always alike."""

    chunks: Literal["contiguous", "auto"] | list[int] = Field(
        default="contiguous",
        description="contiguous; auto (about 1 MiB); or the length of each axis in elements, -1 for the whole axis",
    )
    codecs: list[str] = Field(
        default=[], description=("codec chain in the order of encoding, such as shuffle or deflate:4")
    )
    server: Server | None = Field(default=None, description="read by URL through this server")
    round_trip_ms: float = Field(default=0.0, ge=0, description="added to every request to the server")


MATCHED = Conditions.model_validate({})  # contiguous and uncompressed


class Overrides(Declared):
    """What one scale or one case may override."""

    shapes: list[Shape] | None = None
    counts: list[PositiveInt] | None = None
    properties: PositiveInt | None = None
    conditions: dict[str, Conditions | Literal["default"]] | None = None
    operations: list[Operation] | None = None
    caches: list[Cache] | None = None
    processes: list[PositiveInt] | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, given: Any) -> Any:
        return _expand_short_forms(given)


class Case(Declared):
    """One complete experiment: the arrays, formats, conditions, operations and cache states."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    title: str = ""
    source: str = Field("", description="the document, and the row or figure that this replays")
    family: str = ""
    formats: list[str] = Field(min_length=1)
    options: dict[str, dict[str, Any]] = Field({}, description="options of a format, by the format's name")
    stored_as: dict[str, str] = Field({}, description="dtype whose bits a format stores instead of `dtype`")
    shapes: list[Shape] = Field(min_length=1, description="array shapes; each is measured separately")
    counts: list[PositiveInt] = Field([1], description="numbers of arrays in a file; each is measured separately")
    properties: PositiveInt | None = Field(
        default=None, description="create a compound array with this many float32 fields"
    )
    dtype: str = "float32"
    data: Literal["uniform", "waves", "constant", "integers"] = "uniform"
    data_file: str | None = Field(default=None, description="FILE:ARRAY in any supported format, instead of `data`")
    conditions: dict[str, Conditions | Literal["default"]] = Field({"matched": MATCHED})
    operations: list[Operation] = Field(min_length=1)
    caches: list[Cache] = Field(["warm"], min_length=1)
    processes: list[PositiveInt] = Field([1])
    launcher: Literal["processes", "mpi"] = "processes"
    replay: str | None = Field(default=None, description="the program that repeats the published method")
    scales: dict[Scale, Overrides] = Field({})

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, given: Any) -> Any:
        return _expand_short_forms(given)

    @field_validator("formats")
    @classmethod
    def _known_formats(cls, names: list[str]) -> list[str]:
        return [one_of(name, FORMATS, "format") for name in names]

    @field_validator("dtype")
    @classmethod
    def _known_dtype(cls, name: str) -> str:
        import numpy as np

        try:
            kind = np.dtype(name).kind
        except TypeError as error:
            near = meant(name, NUMBERS) or "; for example float32 or uint16"
            raise ValueError(f"unknown dtype {name!r}{near}") from error
        if kind not in "iuf":
            raise ValueError(f"dtype {name!r} is not a number; for example float32 or uint16")
        return name


def _expand_short_forms(given: Any) -> Any:
    """Accept `shape: [a, b]` for one of `shapes`, `count: n` for one of `counts`, and operations as bare names."""
    if not isinstance(given, Mapping):
        return given
    full = dict(given)
    if "shape" in full:
        full["shapes"] = [full.pop("shape")]
    if "count" in full:
        full["counts"] = [full.pop("count")]
    if isinstance(full.get("operations"), list):
        full["operations"] = [_operation(entry) for entry in full["operations"]]
    return full


def _operation(entry: Any) -> Any:
    if isinstance(entry, str):
        return {"name": entry}
    if isinstance(entry, Mapping) and len(entry) == 1 and "name" not in entry:
        ((name, parameters),) = entry.items()
        return {"name": name, **(parameters or {})}
    return entry


def load(path: Path) -> list[Case]:
    """The cases of a study file. Raises StudyError with the file, the key and what is expected."""
    given = read(path, STUDIES_ARE_LISTED)
    if "NUMBER_ELEMENTS" in given:
        given = _published_configuration(path, given)
    return [checked(path, case, Case) for case in _expanded(given, path.stem)]


def _expanded(given: dict[str, Any], default_name: str) -> Iterator[dict[str, Any]]:
    shared = {key: value for key, value in given.items() if key not in ("cases", "prefix")}
    family = shared.setdefault("name", default_name)
    cases = given.get("cases")
    if cases is None:
        yield {**shared, "family": family}
        return
    if not isinstance(cases, dict):
        raise StudyError(f"study {family}: `cases` must be a mapping from an ID to what that case overrides")
    for identity, said in cases.items():
        merged = {**shared, **(said or {}), "family": family, "name": f"{given.get('prefix', family)}-{identity}"}
        for short, full in (("shape", "shapes"), ("count", "counts")):
            if said and short in said:
                merged.pop(full, None)
            elif said and full in said:
                merged.pop(short, None)
        yield merged


def _published_configuration(path: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Convert the YAML of Ambatipudi's programs: FILE_NAME, NUMBER_DATASETS, NUMBER_ELEMENTS, NUMBER_PROPERTIES."""
    known = {"FILE_NAME", "NUMBER_DATASETS", "NUMBER_ELEMENTS", "NUMBER_PROPERTIES"}
    ignored = {"CHUNK_SIZE", "MIN_DATA_VALUE"}  # in published files, but no published program reads them
    for key in set(given) - known - ignored:
        said = f"{path}: unknown key {key!r} in a published configuration"
        raise StudyError(f"{said}{meant_or_choose(key, sorted(known))}")
    elements = given["NUMBER_ELEMENTS"]
    name = "".join(c if c.isalnum() or c in "._-" else "-" for c in str(given.get("FILE_NAME") or path.stem))
    shared: dict[str, Any] = {
        "name": name.lstrip("._-") or "published",
        "title": f"published configuration {path.name}",
        "source": "Ambatipudi et al. 2023, its own configuration file",
        "shape": elements if isinstance(elements, list) else [elements],
    }
    if "NUMBER_PROPERTIES" in given:
        return shared | {
            "properties": given["NUMBER_PROPERTIES"],
            "formats": ["hdf5-compound", "csv"],
            "operations": ["write", "read-all", "read-fields", "read-random-rows", "read-half-fields"],
            "conditions": {"default": "default"},
            "replay": "common-io-compound",
        }
    return shared | {
        "count": given.get("NUMBER_DATASETS", 1),
        "formats": ["hdf5", "netcdf4", "zarr2"],
        "operations": ["write", "read-all"],
        "conditions": {"matched": {}, "default": "default"},
        "replay": "common-io-basic",
    }


STUDIES_DIRECTORY = Path(__file__).parent.parent / "studies"


def shipped() -> list[Case]:
    """All cases of the studies that hyperslab includes."""
    files = sorted(path for path in STUDIES_DIRECTORY.glob("*.yaml") if path.stem != "conclusions")
    return [case for path in files for case in load(path)]


def json_schema() -> str:
    """The JSON schema of a study file, for completion in editors: its keys, their short forms, and its `cases:`."""
    schema = Case.model_json_schema()
    named = schema["$defs"]
    parameters = {key: said for key, said in named["Operation"]["properties"].items() if key != "name"}
    alone = {"anyOf": [{"type": "object", "properties": parameters, "additionalProperties": False}, {"type": "null"}]}
    by_name = {"type": "object", "properties": dict.fromkeys(OPERATIONS, alone), "additionalProperties": False}
    named["Operation"]["properties"]["name"]["enum"] = list(OPERATIONS)
    named["AnyOperation"] = {
        "anyOf": [{"enum": list(OPERATIONS)}, {**by_name, "maxProperties": 1}, {"$ref": "#/$defs/Operation"}]
    }
    schema["properties"]["formats"]["items"]["enum"] = list(FORMATS)
    for said in (schema, named["Overrides"]):
        properties = said["properties"]
        properties["shape"] = {"type": "array", "items": {"type": "integer", "exclusiveMinimum": 0}}
        properties["count"] = {"type": "integer", "exclusiveMinimum": 0}
        properties["operations"] = {"type": "array", "items": {"$ref": "#/$defs/AnyOperation"}}
        said.pop("required", None)  # a file and its cases share the required keys
    same = {key: {"$ref": f"#/properties/{key}"} for key in schema["properties"]}
    case = {"type": "object", "properties": same, "additionalProperties": False}
    schema["properties"]["cases"] = {
        "type": "object",
        "additionalProperties": {"anyOf": [case, {"type": "null"}]},
        "description": "ID -> what that case overrides",
    }
    schema["properties"]["prefix"] = {"type": "string", "description": "prefix of the cases' names: prefix-ID"}
    return json.dumps({**schema, "title": "hyperslab study"}, indent=1, sort_keys=True) + "\n"
