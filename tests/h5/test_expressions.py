"""What users write to read is the same with `import hyperslab.h5 as h5py`."""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import h5_comparing
import h5_expressions
import h5_samples
import numpy as np
import pytest

import hyperslab.h5 as ours

theirs = pytest.importorskip("h5py")

# What differs on purpose, and why.
MAKES_REGIONS = "h5py cannot make a region reference in a file that is open for reading; here it lives in memory"
OTHERWISE = {
    ("basics", 'f["x"].regionref[0:2, 1]'): MAKES_REGIONS,
    ("basics", 'f["x"][f["x"].regionref[0:2, 1, 2:4]]'): MAKES_REGIONS,
    ("basics", 'f["line"][f["line"].regionref[[1, 3, 4]]]'): MAKES_REGIONS,
    ("basics", 'f["x"].regionref.shape(f["x"].regionref[0])'): MAKES_REGIONS,
    ("basics", 'f["x"].regionref.selection(f["x"].regionref[0])'): MAKES_REGIONS,
    ("basics", 'f["line"][f["x"].regionref[0]]'): MAKES_REGIONS,
}


def visited(visit: Any) -> list[Any]:
    found: list[Any] = []
    visit(lambda *one: found.append(one))
    return found


def filled(dataset: Any, shape: Any, dtype: str, *selections: Any) -> Any:
    out = np.zeros(shape, dtype)
    dataset.read_direct(out, *selections)
    return out


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("h5")
    for name, make in h5_samples.FILES.items():
        make(folder / f"{name}.h5")
    return {name: folder / f"{name}.h5" for name in h5_samples.FILES}


def outcome(module: ModuleType, path: Path, expression: str) -> Any:
    names = {"h5py": module, "np": np, "visited": visited, "filled": filled, "__file__": __file__}
    f = module.File(path, "r")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return comparable(eval(expression, {**names, "f": f}))
    except Exception as error:
        return error
    finally:
        with contextlib.suppress(
            RuntimeError
        ):  # h5py cannot close a file for reading in which it was to make something
            f.close()


def comparable(found: Any) -> Any:
    """A result that can be compared once its file is closed: objects by what they say."""
    if isinstance(found, list | tuple) and not hasattr(found, "_fields"):
        return type(found)(map(comparable, found))
    if isinstance(found, dict):
        return {key: comparable(value) for key, value in found.items()}
    if type(found).__name__ in ("File", "Group", "Dataset", "Datatype", "KeysViewHDF5"):
        return (type(found).__name__, repr(found), getattr(found, "name", None))
    return found


CASES = [(file, expression) for file, found in h5_expressions.EXPRESSIONS.items() for expression in found]


@pytest.mark.parametrize(("file", "expression"), CASES)
def test_an_expression_gives_what_h5py_gives(files: dict[str, Path], file: str, expression: str) -> None:
    found = h5_comparing.differences(outcome(theirs, files[file], expression), outcome(ours, files[file], expression))
    assert (found is None) != ((file, expression) in OTHERWISE), found


def test_there_are_enough_expressions() -> None:
    assert len(set(CASES)) >= 500
