"""A workload file: what `hyperslab predict` reads. It may describe several arrays, each with accesses of its own.

Each array is priced alone, as if it were in a file of its own: its chunk cache, its index and its place on the device
have nothing to do with the others.

    arrays:
      temperature: {shape: [365, 721, 1440], dtype: float32}
      mask: {shape: [721, 1440], dtype: uint8}
    accesses:
      - {array: mask, select: all}
      - {array: temperature, select: map, count: 12}
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from hyperslab.declared import Misplaced, checked, loc_of, read
from hyperslab.errors import StudyError
from hyperslab.meant import meant_or_choose
from hyperslab.model.workload import Access, Workload, WorkloadArray

# Without a key `arrays`, the file's array has no name.
ALONE = ""
SCHEMA_FILE = Path(__file__).with_name("workload.schema.json")


class NamedAccess(Access):
    """An access, with the name of its array if there are several."""

    array: str | None = Field(default=None, description="which of `arrays` is accessed")


class WorkloadFile(Workload):
    """Arrays and the accesses to them, in order."""

    array: WorkloadArray | None = Field(default=None, description="the array, if there is only one")  # type: ignore[assignment]
    arrays: dict[str, WorkloadArray] | None = Field(
        default=None, min_length=1, description="several arrays by name; each access then says which one it is for"
    )
    accesses: list[NamedAccess] = Field(min_length=1)  # type: ignore[assignment]

    @model_validator(mode="after")
    def _inside(self) -> WorkloadFile:
        if (self.array is None) == (self.arrays is None):
            raise ValueError("give either array or arrays")
        for position, access in enumerate(self.accesses):
            if self.arrays is None and access.array is not None:
                raise Misplaced("only a workload with `arrays` names them", "accesses", position, "array")
            if self.arrays is not None and access.array not in self.arrays:
                given = "no array is named" if access.array is None else f"there is no array {access.array!r}"
                given += meant_or_choose(access.array or "", self.arrays)
                raise Misplaced(given, "accesses", position, "array")
        self.apart()
        return self

    def apart(self) -> dict[str, Workload]:
        """The workload of each array that is accessed, by its name. All arrays are in one file."""
        arrays = self.arrays if self.arrays is not None else {ALONE: self.array}
        workloads = {}
        for name, array in arrays.items():
            mine = [k for k, access in enumerate(self.accesses) if (access.array or ALONE) == name]
            if mine and array is not None:
                workloads[name] = self._of(array, mine)
        if self.arrays is None:
            return workloads
        openings = self._openings_of_each()
        return {name: workload.in_file(openings[name]) for name, workload in workloads.items()}

    def _openings_of_each(self) -> dict[str, list[tuple[bool, float]]]:
        """What `Workload.in_file` needs for each array. Whoever is read first after the file was opened pays for it."""
        openings: dict[str, list[tuple[bool, float]]] = {}
        last_seen: dict[str, int] = {}
        opened, is_open = 0, False
        for access in self.accesses * self.repeat:
            name = access.array or ALONE
            if access.reopen and is_open:
                opened, is_open = opened + 1, False
            begins = last_seen.get(name) != opened
            openings.setdefault(name, []).append((begins and name in last_seen, float(begins and is_open)))
            last_seen[name], is_open = opened, True
        return openings

    def _of(self, array: WorkloadArray, positions: list[int]) -> Workload:
        given = self.model_dump(exclude={"array", "arrays", "accesses"}, exclude_unset=True)
        given["array"] = array.model_dump(exclude_unset=True)
        given["accesses"] = [self.accesses[k].model_dump(exclude={"array"}, exclude_unset=True) for k in positions]
        try:
            return Workload.model_validate(given)
        except ValidationError as error:
            first = error.errors()[0]
            loc = loc_of(first)
            if len(loc) > 1 and loc[0] == "accesses":
                loc = ("accesses", positions[int(loc[1])], *loc[2:])
            raise Misplaced(first["msg"].removeprefix("Value error, "), *loc) from error


def load_workloads(path: str | Path) -> dict[str, Workload]:
    """Load the workloads of a file by the names of their arrays; an array alone has the name ''.

    Raises
    ------
    StudyError
        The file is missing or does not describe a workload. The message names the file, the line and the key.
    """
    return checked(Path(path), read(Path(path)), WorkloadFile).apart()


def load_workload(path: str | Path) -> Workload:
    """Load a workload of one array from a YAML file.

    Raises
    ------
    StudyError
        The file is missing, does not describe a workload, or has several arrays. The message names the file, the line
        and the key.
    """
    (first, *others) = (workloads := load_workloads(path)).values()
    if others:
        raise StudyError(f"{path}: has several arrays ({', '.join(workloads)}): load them with load_workloads")
    return first


def schema() -> dict[str, Any]:
    """The JSON schema of a workload file, for editors and other programs."""
    made: dict[str, Any] = _without_titles(WorkloadFile.model_json_schema())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hyperslab workload",
        **made,
        "oneOf": [{"required": ["array"]}, {"required": ["arrays"]}],
    }


def _without_titles(given: Any) -> Any:
    """The schema without the titles that pydantic makes from the keys: they say nothing else."""
    if isinstance(given, list):
        return [_without_titles(one) for one in given]
    if not isinstance(given, dict):
        return given
    return {key: _without_titles(value) for key, value in given.items() if key != "title" or isinstance(value, dict)}


def schema_text() -> str:
    """The schema as it is in the package, in `workload.schema.json`."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"
