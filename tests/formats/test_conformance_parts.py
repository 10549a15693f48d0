"""Every format keeps its promises about parts of arrays, growth and compound types."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.lib.recfunctions import repack_fields
from storing import (
    NO_NEED,
    TABLE,
    accepted,
    description,
    holds,
    layouts,
    opened,
    path_of,
    plain_spec,
    round_trip,
    same,
    sample,
    specs_of_each_layout,
    store,
    table,
)

from hyperslab import Hyperslab
from hyperslab.errors import Refused
from hyperslab.formats.contract import ArraySpec, Format, Need

BOXES = [np.s_[0:12, 0:10], np.s_[3:9, 2:7], np.s_[0:1, 0:10], np.s_[11:12, 9:10], np.s_[2:5, 0:10], np.s_[0:12, 4:5]]
STRIDED = [np.s_[::2, ::3], np.s_[1:12:5, :], np.s_[:, 1:9:4], np.s_[0:12:11, 3:4], np.s_[2:3, ::2]]
EXAMPLES = int(os.environ.get("HYPERSLAB_EXAMPLES", "5"))
ROWS = ArraySpec((20,), TABLE)


def cut(slices: tuple[slice, ...], shape: tuple[int, ...]) -> Hyperslab:
    return Hyperslab.from_slices(slices[: len(shape)], shape)


@pytest.mark.parametrize("strided", [False, True], ids=["boxes", "strided"])
def test_parts_are_read(contender: Format, strided: bool, tmp_path: Path) -> None:
    if not (contender.capabilities.strided if strided else contender.capabilities.slices):
        assert contender.refusal(plain_spec(contender), Need(slices=not strided, strided=strided))
        return
    for index, spec in enumerate(specs_of_each_layout(contender)):
        data, path = sample(spec), path_of(contender, tmp_path, index)
        store(contender, path, spec, data)
        wanted = [cut(slices, spec.shape) for slices in (STRIDED if strided else BOXES)]
        with opened(contender, path, spec) as handle:
            for selection, one_of_many in zip(wanted, handle.read_many(wanted), strict=True):
                same(contender, one_of_many, data[selection.slices])
                same(contender, handle.read(selection), data[selection.slices])


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(picture=st.data())
def test_any_shape_and_part(contender: Format, tmp_path: Path, picture: st.DataObject) -> None:
    can = contender.capabilities
    shapes = st.lists(st.integers(1, 9), min_size=1, max_size=min(can.max_ndim or 4, 4))
    spec = plain_spec(contender, tuple(picture.draw(shapes, "shape")))
    folder = tmp_path / "one"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    data, path = sample(spec), path_of(contender, folder)
    store(contender, path, spec, data)
    with opened(contender, path, spec) as handle:
        same(contender, handle.read(), data)
        for _ in range(4 if can.slices else 0):
            slices = tuple(picture.draw(_slices(extent, can.strided), "slice") for extent in spec.shape)
            same(contender, handle.read(cut(slices, spec.shape)), data[slices])


def _slices(extent: int, strided: bool) -> st.SearchStrategy[slice]:
    bounds = st.lists(st.integers(0, extent), min_size=2, max_size=2, unique=True).map(sorted)
    steps = st.integers(1, extent) if strided else st.just(1)
    return st.builds(lambda bounds, step: slice(*bounds, step), bounds, steps)


def test_part_is_overwritten(contender: Format, tmp_path: Path) -> None:
    if not contender.capabilities.overwrite:
        assert contender.refusal(plain_spec(contender), Need(overwrite=True))
        return
    for index, spec in enumerate(specs_of_each_layout(contender)):
        path, expected = path_of(contender, tmp_path, index), sample(spec)
        store(contender, path, spec, expected)
        for slices in [*BOXES[1:], STRIDED[0]]:
            _overwrite(contender, path, spec, cut(slices, spec.shape), expected)
        holds(contender, path, spec, expected)


def _overwrite(contender: Format, path: Path, spec: ArraySpec, part: Hyperslab, expected: np.ndarray) -> None:
    """Change a part in a file that is opened for it.

    A format may refuse every k-th element, but must not corrupt data.
    """
    changed = np.ones(part.shape, spec.dtype)
    with opened(contender, path, spec, "r+") as handle:
        try:
            handle.write(changed, part)
        except Refused:
            assert not part.is_contiguous_box
        else:
            expected[part.slices] = changed


def test_array_is_written_in_parts(contender: Format, tmp_path: Path) -> None:
    if not contender.capabilities.overwrite:
        return
    for index, spec in enumerate(specs_of_each_layout(contender)):
        path, data = path_of(contender, tmp_path, index), sample(spec)
        with closing(contender.create(path)) as file:
            handle = file.create_array("a", spec)
            for rows in (np.s_[8:12], np.s_[0:4], np.s_[4:8]):
                handle.write(data[rows], Hyperslab.from_slices(rows, spec.shape))
        holds(contender, path, spec, data)


def test_append(contender: Format, tmp_path: Path) -> None:
    spec = plain_spec(contender)
    if not contender.capabilities.append:
        assert contender.refusal(spec, Need(append=True))
        assert contender.refusal(replace(spec, growable=True), NO_NEED)
        return
    growing = [layout for layout in layouts(contender) if accepted(contender, layout, growable=True)]
    for index, layout in enumerate([None, *growing]):
        spec = plain_spec(contender, layout=layout, growable=True)
        _grows(contender, path_of(contender, tmp_path, index), spec)


def _grows(contender: Format, path: Path, spec: ArraySpec) -> None:
    first = sample(spec)
    with closing(contender.create(path)) as file:
        handle = file.create_array("a", spec)
        handle.write(first)
        handle.append(first[3:4])
        handle.append(first[2:9])
    longer = replace(spec, shape=(spec.shape[0] + 8, *spec.shape[1:]))
    with opened(contender, path, longer, "r+") as handle:
        handle.append(first)
    expected = np.concatenate([first, first[3:4], first[2:9], first])
    holds(contender, path, replace(spec, shape=expected.shape), expected)
    if contender.capabilities.self_describing:
        assert description(contender, path).shape == expected.shape


def test_compound(contender: Format, tmp_path: Path) -> None:
    if not contender.capabilities.compound:
        assert contender.refusal(ROWS, NO_NEED)
        assert contender.refusal(plain_spec(contender), Need(compound=True))
        return
    assert contender.refusal(ROWS, Need(compound=True)) is None
    data, path = table(20), path_of(contender, tmp_path)
    round_trip(contender, path, ROWS, data)
    with opened(contender, path, ROWS) as handle:
        for wanted in (["b"], ["a", "d"], ["c", "b"], ["a", "b", "c", "d"]):
            same(contender, handle.read_fields(wanted), repack_fields(data[wanted]))
        if contender.capabilities.slices:
            same(contender, handle.read(cut(np.s_[4:11,], (20,))), data[4:11])


def test_wide_table(contender: Format, tmp_path: Path) -> None:
    """1024 fields, as in the published study of compound types: stored, or refused with the number."""
    if not contender.capabilities.compound:
        return
    spec = ArraySpec((3,), np.dtype([(f"field_{index:04d}", "f4") for index in range(1024)]))
    reason = contender.refusal(spec, NO_NEED)
    if reason is not None:
        assert "1024" in reason
        return
    data = np.arange(3 * 1024, dtype="f4").view(spec.dtype)
    round_trip(contender, path_of(contender, tmp_path), spec, data)


def test_field_is_written_alone(contender: Format, tmp_path: Path) -> None:
    if not contender.capabilities.field_write:
        assert contender.refusal(ROWS, Need(field_write=True))
        return
    data, path = table(20), path_of(contender, tmp_path)
    store(contender, path, ROWS, data)
    with opened(contender, path, ROWS, "r+") as handle:
        handle.write_field("b", np.arange(20, dtype="i4"))
    data["b"] = np.arange(20)
    holds(contender, path, ROWS, data)


def test_table_is_written_field_by_field(contender: Format, tmp_path: Path) -> None:
    if not contender.capabilities.field_write:
        return
    data, path = table(20), path_of(contender, tmp_path)
    with closing(contender.create(path)) as file:
        handle = file.create_array("a", ROWS)
        for name in ("c", "a", "b", "d"):
            handle.write_field(name, np.ascontiguousarray(data[name]))
    holds(contender, path, ROWS, data)


def test_array_is_created_and_never_written(contender: Format, tmp_path: Path) -> None:
    spec = plain_spec(contender)
    if not contender.capabilities.empty:
        assert contender.refusal(spec, Need(empty=True))
        return
    path = path_of(contender, tmp_path)
    made = contender.create(path)
    made.create_array("array_0", spec)
    made.flush()
    made.close()
    with closing(contender.open(path)) as found:
        assert found.open_array("array_0", spec).read().shape == spec.shape
