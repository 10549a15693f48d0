"""A store profile is a JSON file with what accesses cost on one machine and store, as `calibrate` measured it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab.archive.views import display_html
from hyperslab.errors import NotAStoreProfile, Untrained, printable
from hyperslab.lab.environment import Environment, observe
from hyperslab.model.costs import CallsBeyond, Coefficient, Coefficients
from hyperslab.model.counting import Direction, Variables
from hyperslab.model.fit import Observation, fit, repeated_on
from hyperslab.model.libraries import Caches
from hyperslab.model.terms import EXTENDED, Model, Term
from hyperslab.regular_files import read_regular
from hyperslab.replacing import replace_with

SCHEMA = "hyperslab-store-profile"
VERSION = 6
LATER = {"n_again", "n_cold", "s_rneed", "s_later", "n_decode", "n_encode", "s_direct"}
"""Variables that older calibrations do not have: their fits price the same work by other terms."""


@dataclass(frozen=True)
class StoreProfile:
    """The coefficients of a machine and a store, with the cells that they were fitted to.

    `store` describes what was measured, such as `local disk`. `made_at` is the time (ISO 8601, UTC). The directory is
    not saved, so that you can show a store profile to others. If `is_far`, our own engine read a file on a server.
    `busy_share` is the share of the processors that other programs used meanwhile: it makes intervals wider. `netcdf4`
    is what netCDF4 takes beyond h5py; None if it was not measured, as by older versions of hyperslab.
    """

    environment: Environment
    store: str
    made_at: str
    scale: str
    hyperslab_version: str
    cells: tuple[Observation, ...]
    fits: tuple[Coefficients, ...]
    notes: tuple[str, ...] = ()
    is_far: bool = False
    busy_share: float = 0.0
    netcdf4: CallsBeyond | None = None
    _fitted: dict[tuple[str, str, str], Coefficients] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<hyperslab.StoreProfile of {printable(self.store)}, made {printable(self.made_at)} ({self.scale})>"

    def _repr_html_(self) -> str:
        known = [
            ("measured", self.store),
            ("at", self.made_at),
            ("scale", self.scale),
            ("cells", f"{len(self.cells):,}"),
        ]
        known += [("libraries", ", ".join(self.libraries)), ("by hyperslab", self.hyperslab_version)]
        known += [("busy", f"{100 * self.busy_share:.0f} % of the processors")] if self.busy_share else []
        return display_html.facts("hyperslab.StoreProfile", "", known, self.notes)

    @property
    def libraries(self) -> tuple[str, ...]:
        """The libraries that were trained, in the order of the training."""
        return tuple(dict.fromkeys(each.library for each in self.fits))

    def coefficients(self, library: str, operation: Direction, model: Model = EXTENDED) -> Coefficients:
        """The coefficients of a library and operation, as saved, or fitted to the cells for another model.

        Raises
        ------
        Untrained
            The profile has no cells of this library and operation.
        TooFewCells
            The profile has too few cells to fit this model.
        """
        for each in self.fits:
            if (each.library, each.operation, each.model) == (library, operation, model.name):
                return each
        if not any((cell.library, cell.operation) == (library, operation) for cell in self.cells):
            raise Untrained(
                f"this store profile has no {library}, {operation}; it has {', '.join(self._trained())}; run "
                "hyperslab calibrate on a machine that has the library"
            )
        key = (library, operation, repr(model))
        if key not in self._fitted:
            self._fitted[key] = fit(self.cells, library, operation, model, repeated=repeated_on(self.busy_share))
        return self._fitted[key]

    def _trained(self) -> list[str]:
        return list(dict.fromkeys(f"{cell.library} {cell.operation}" for cell in self.cells)) or ["no cells"]

    def differs_from_this_machine(self, directory: Path | None = None) -> list[str]:
        """Differences that may make predictions wrong on this machine, in words. `directory` is where your data are."""
        here = observe(directory or Path.cwd(), list(self.environment.libraries))
        if self.is_far:
            here = elsewhere(here)
        reasons = here.differences(self.environment)
        kernels = self.environment.kernel, here.kernel
        if kernels[0] != kernels[1]:
            reasons.append(f"kernel: {kernels[1]} against {kernels[0]}")
        for name, version in self.environment.libraries.items():
            now = here.libraries.get(name, "not installed")
            if now != version:
                reasons.append(f"{name}: {now} against {version}")
        return reasons

    def to_json(self) -> str:
        """The text of the file."""
        document = {
            "schema": SCHEMA,
            "version": VERSION,
            "store": self.store,
            "far": self.is_far,
            "made_at": self.made_at,
            "scale": self.scale,
            "hyperslab_version": self.hyperslab_version,
            "environment": self.environment.to_dict(),
            "busy_share": self.busy_share,
            "netcdf4": None if self.netcdf4 is None else asdict(self.netcdf4),
            "notes": list(self.notes),
            "fits": [_fit_document(each) for each in self.fits],
            "variables": list(Variables._fields),
            "cells": [_cell_document(cell) for cell in self.cells],
        }
        return json.dumps(document, indent=1) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the file completely or not at all. Its directory is created if necessary."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        replace_with(Path(path), self.to_json().encode())


def caches_of(environment: Environment) -> Caches:
    """The sizes of the machine's caches."""
    read_ahead_nbytes = (environment.read_ahead_kib or 0) * 1024
    if environment.memory_nbytes is None:
        return Caches(read_ahead_nbytes=read_ahead_nbytes)
    return Caches(int(environment.memory_nbytes * 0.8), read_ahead_nbytes)


def elsewhere(environment: Environment) -> Environment:
    """The machine without its disk: the disk does not matter if the data are far away."""
    return replace(environment, file_system=None, mount_options=None, read_ahead_kib=None, rotational=None)


def default_path() -> Path:
    """The default path of the store profile, in your data directory (XDG)."""
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "hyperslab" / "store-profile.json"


def load_store_profile(path: str | Path | None = None) -> StoreProfile:
    """Load a store profile.

    Parameters
    ----------
    path : str | Path | None
        The path of the file; None means the default path.

    Returns
    -------
    StoreProfile
        The profile.

    Raises
    ------
    NotAStoreProfile
        The file does not exist, is cut off, is not a store profile, or has another version.
    """
    path = Path(path) if path is not None else default_path()
    remedy = f"create one with hyperslab calibrate -o {path}"
    other = "hyperslab calibrate makes store profiles"  # never over a file of yours
    try:
        document: Any = json.loads(read_regular(path))
    except FileNotFoundError as error:
        raise NotAStoreProfile(f"{path} does not exist; {remedy}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise NotAStoreProfile(f"{path} cannot be read as a store profile: {error}; {other}") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise NotAStoreProfile(f"{path} is not a complete JSON file ({error}) and may be cut off; {other}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise NotAStoreProfile(f"{path} is not a store profile; {other}")
    if document.get("version") != VERSION:
        version = document.get("version")
        raise NotAStoreProfile(
            f"{path} is a store profile of version {version}, but this program reads version {VERSION}; {remedy}"
        )
    try:
        return _profile_of(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotAStoreProfile(f"{path} is a damaged store profile ({error!r}); {remedy}") from error


def _profile_of(document: dict[str, Any]) -> StoreProfile:
    names = document["variables"]
    if not {*Variables._fields} - LATER <= {*names} <= {*Variables._fields}:
        raise ValueError("its variables differ")
    busy_share = float(document.get("busy_share", 0.0))
    if not 0 <= busy_share <= 1:
        raise ValueError("its busy_share is not between 0 and 1")
    return StoreProfile(
        environment=Environment(**document["environment"]),
        store=str(document["store"]),
        made_at=str(document["made_at"]),
        scale=str(document["scale"]),
        hyperslab_version=str(document["hyperslab_version"]),
        cells=tuple(_cell_of(each, names) for each in document["cells"]),
        fits=tuple(_fit_of(each if "s_later" in names else _with_later(each)) for each in document["fits"]),
        notes=tuple(map(str, document["notes"])),
        is_far=bool(document.get("far", False)),
        busy_share=busy_share,
        netcdf4=_beyond_of(document.get("netcdf4")),
    )


def _beyond_of(given: dict[str, Any] | None) -> CallsBeyond | None:
    if given is None:
        return None
    numbers = {name: float(value) for name, value in given.items()}
    if not all(0 <= value < 1e9 for value in numbers.values()):
        raise ValueError("what netCDF4 takes beyond h5py is not a number of at least 0")
    return CallsBeyond(**numbers)


def _cell_document(cell: Observation) -> dict[str, Any]:
    return {**asdict(cell), "variables": [float(f"{value:.9g}") for value in cell.variables]}


def _cell_of(given: dict[str, Any], names: Sequence[str]) -> Observation:
    variables = Variables(**dict(zip(names, map(float, given["variables"]), strict=True)))
    return Observation(**{**given, "variables": variables, "seconds": float(given["seconds"])})


def _fit_document(given: Coefficients) -> dict[str, Any]:
    return {
        **{name: getattr(given, name) for name in FIT_FIELDS},
        "coefficients": [
            {
                "name": each.term.name,
                "unit": each.term.unit,
                "value": each.value,
                "low": each.low,
                "high": each.high,
                "term": asdict(each.term),
            }
            for each in given.each
        ],
        "covariance": given.covariance.tolist(),
        "ranges": {name: list(pair) for name, pair in given.ranges.items()},
    }


FIT_FIELDS = ("model", "library", "operation", "spread", "cell_count", "condition", "ridge", "rmse_log10")


def _fit_of(given: dict[str, Any]) -> Coefficients:
    each = tuple(
        Coefficient(Term(**one["term"]), float(one["value"]), one["low"], one["high"]) for one in given["coefficients"]
    )
    covariance = np.array(given["covariance"], np.float64)
    if covariance.shape != (len(each), len(each)):
        raise ValueError("the shape of the covariance does not match the number of coefficients")
    if not np.isfinite(covariance).all() or not all(np.isfinite(one.value) and one.value >= 0 for one in each):
        raise ValueError("a coefficient is not a finite number of at least 0")
    ranges = {name: (float(low), float(high)) for name, (low, high) in given["ranges"].items()}
    return Coefficients(**{name: given[name] for name in FIT_FIELDS}, each=each, covariance=covariance, ranges=ranges)


def _with_later(given: dict[str, Any]) -> dict[str, Any]:
    """The fit of an older calibration: it priced what was read ahead for later calls like what its call covers."""
    each, covariance = given["coefficients"], np.array(given["covariance"], np.float64)
    for place, one in enumerate(each):
        if one["term"]["variable"] == "s_covered" and covariance.ndim == 2:
            order = [*range(len(each)), place]
            later = {**one, "name": "s_later", "term": {**one["term"], "variable": "s_later"}}
            return {**given, "coefficients": [*each, later], "covariance": covariance[np.ix_(order, order)].tolist()}
    return given


def profile_if_any(path: Path | None) -> StoreProfile | None:
    """The store profile, or None if this machine has none: then seconds are unknown.

    Raises
    ------
    NotAStoreProfile
        The path that was named is none.
    """
    try:
        return load_store_profile(path)
    except NotAStoreProfile:
        if path is not None:
            raise
        return None
