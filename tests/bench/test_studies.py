"""Every included study loads, agrees with the papers' tables, and stays small at the small scales."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import yaml

from hyperslab.bench import operations as study_operations
from hyperslab.bench import scaling, study
from hyperslab.bench.cells import array_dtype, groups, refusal
from hyperslab.bench.published import REPLAYS
from hyperslab.bench.scaling import LIMITS, scaled
from hyperslab.bench.study import Case
from hyperslab.errors import StudyError

CASES = {case.name: case for case in study.shipped()}

# Ambatipudi's table: ID -> number of arrays (for tables, number of properties), shape, data size in MB as published.
PUBLISHED = {
    "1": (2048, [[128]], [1]),
    "2": (2048, [[128, 128]], [128]),
    "3": (2048, [[128, 128, 128]], [16384]),
    "4": (2048, [[256]], [2]),
    "5": (4096, [[256]], [4]),
    "6": (8192, [[256]], [8]),
    "7": (2048, [[1048576]], [8192]),
    "8a": (2048, [[1048576]], [8192]),
    "8b": (2048, [[1024, 1024]], [8192]),
    "9": (2048, [[1048576]], [8192]),
    "10": (2048, [[1024, 1024]], [8192]),
    "11": (2048, [[128, 128, 64]], [8192]),
    "12": (4096, [[1048576]], [16384]),
    "13": (4096, [[1024, 1024]], [16384]),
    "14": (4096, [[128, 128, 64]], [16384]),
    "15": (64, [[1073741824]], [262144]),
    "16": (64, [[1048576, 1024]], [262144]),
    "17": (64, [[1024, 1024, 1024]], [262144]),
    "18": (128, [[1073741824]], [524288]),
    "19": (128, [[1048576, 1024]], [524288]),
    "20": (128, [[1024, 1024, 1024]], [524288]),
    "21": (64, [[1048576], [10485760], [104857600], [1073741824]], [256, 2560, 25600, 262144]),
    "22": (2048, [[1048576]], [8192]),
    "23": (2048, [[1024, 1024]], [8192]),
    "24": (4096, [[1048576]], [16384]),
    "25": (4096, [[1024, 1024]], [16384]),
    "26": (4, [[10485760]], [160]),
    "27": (4, [[104857600]], [1600]),
    "31": (512, [[1024]], [2]),
    "32": (1024, [[1024]], [4]),
    "33": (4, [[1048576]], [16]),
}
# The table gives these the sizes of ID 21, which has sixteen times as many arrays.
MISPRINTED = {"28", "29", "30"}


def megabytes(case: Case, shape: list[int]) -> float:
    return math.prod(shape) * array_dtype(case).itemsize * case.counts[0] / (1 << 20)


def test_names_are_unique_and_families_are_the_files() -> None:
    names = [case.name for case in study.shipped()]
    assert len(names) == len(set(names))
    files = {path.stem for path in study.STUDIES_DIRECTORY.glob("*.yaml")} - {"conclusions"}
    assert {case.family for case in CASES.values()} == files
    assert all(case.title and case.source for case in CASES.values())


def test_every_row_of_seed_0_is_there() -> None:
    identities = {name.removeprefix("common-io-") for name in CASES if name.startswith("common-io-")}
    assert identities == set(PUBLISHED) | MISPRINTED


@pytest.mark.parametrize("identity", PUBLISHED)
def test_seed_0_has_the_published_dimensions_and_sizes(identity: str) -> None:
    case = CASES[f"common-io-{identity}"]
    number, shapes, sizes = PUBLISHED[identity]
    assert case.shapes == shapes
    assert (case.properties or case.counts[0]) == number
    assert [megabytes(case, shape) for shape in shapes] == sizes


@pytest.mark.parametrize("identity", sorted(MISPRINTED))
def test_four_arrays_have_a_sixteenth_of_the_published_size(identity: str) -> None:
    case = CASES[f"common-io-{identity}"]
    assert case.shapes == PUBLISHED["21"][1]
    assert [megabytes(case, shape) * 16 for shape in case.shapes] == PUBLISHED["21"][2]


def test_the_2002_sizes_are_those_of_the_slides() -> None:
    def sizes(name: str) -> list[float]:
        return [megabytes(CASES[name], shape) for shape in CASES[name].shapes]

    assert sizes("formats-2002-write") == [2, 4, 8, 16, 32, 64, 128, 256, 512]
    assert sizes("formats-2002-read") == [2, 4, 8, 16, 32, 64, 128, 256]
    assert [size / 4 for size in sizes("formats-2002-hyperslab")] == [1, 2, 4, 8, 16, 32, 64]
    stride = CASES["formats-2002-stride"]
    selected = [math.prod(operation.shape or []) / 4 * 2 / (1 << 20) for operation in stride.operations]
    assert selected == [0.25, 0.5, 1, 2, 4, 8, 16]
    assert CASES["formats-2002-many"].counts == [1, 10, 100, 1000]
    assert sizes("formats-2002-many") == [1]


@pytest.mark.parametrize("scale", ["quick", "small"])
@pytest.mark.parametrize("name", CASES)
def test_a_scale_keeps_to_its_limits(name: str, scale: str) -> None:
    case = scaled(CASES[name], scale)
    limit, most = LIMITS[scale]
    largest = max(math.prod(shape) for shape in case.shapes) * array_dtype(case).itemsize
    assert largest * max(case.counts) <= limit
    assert max(case.counts) <= most


def test_cases_that_differ_in_their_number_of_arrays_alone_still_do_when_scaled() -> None:
    for scale in ("quick", "small"):
        counts = [scaled(CASES[f"common-io-{identity}"], scale).counts[0] for identity in (4, 5, 6)]
        assert counts == [counts[0], 2 * counts[0], 4 * counts[0]]


@pytest.mark.parametrize("name", CASES)
def test_every_format_of_a_published_study_takes_part_in_what_it_did(name: str) -> None:
    """In studies that repeat a published one, no format lacks an operation, except CSV the writing of single fields."""
    case = CASES[name]
    if case.replay is None:
        return
    assert case.replay in REPLAYS
    for scale in ("quick", "paper"):
        smaller = scaled(case, scale)
        cells = [cell for group in groups(smaller, "fair") for cell in group.cells]
        reasons = {(cell.format, cell.operation.name): why for cell in cells if (why := refusal(smaller, cell))}
        missing = {key: why for key, why in reasons.items() if "not installed" not in why}
        assert set(missing) <= {("csv", "write-fields")}


def test_schema_file_is_the_schema() -> None:
    """If a key changes, write the file again with `study.json_schema()`."""
    assert (study.STUDIES_DIRECTORY / "study.schema.json").read_text() == study.json_schema()


def test_schema_knows_every_key_of_every_shipped_file() -> None:
    schema = json.loads(study.json_schema())
    known = schema["properties"]
    in_case = known["cases"]["additionalProperties"]["anyOf"][0]["properties"]
    in_scale = schema["$defs"]["Overrides"]["properties"]
    for path in study.STUDIES_DIRECTORY.glob("*.yaml"):
        if path.stem == "conclusions":
            continue
        said = yaml.safe_load(path.read_text())
        assert set(said) <= set(known), path
        for case in said.get("cases", {}).values():
            assert set(case) <= set(in_case), path
        for scale in said.get("scales", {}).values():
            assert set(scale) <= set(in_scale), path


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "own.yaml"
    path.write_text(text)
    return path


def test_published_configuration_is_accepted_as_it_is(tmp_path: Path) -> None:
    (case,) = study.load(
        write(tmp_path, "FILE_NAME: Test 2\nNUMBER_DATASETS: 2048\nNUMBER_ELEMENTS: [128, 128]\nCHUNK_SIZE: 4\n")
    )
    assert (case.shapes, case.counts, case.replay) == ([[128, 128]], [2048], "common-io-basic")
    assert case.formats == ["hdf5", "netcdf4", "zarr2"]


def test_published_configuration_of_a_table_is_accepted_as_it_is(tmp_path: Path) -> None:
    (case,) = study.load(write(tmp_path, "FILE_NAME: t\nNUMBER_PROPERTIES: 4\nNUMBER_ELEMENTS: 1024\n"))
    assert (case.shapes, case.properties, case.replay) == ([[1024]], 4, "common-io-compound")


def test_a_study_of_ten_lines_is_enough(tmp_path: Path) -> None:
    text = (
        "title: mine\nformats: [hdf5, zarr3]\nshape: [8, 8]\ncount: 3\noperations: [write, {read-rows: {count: 2}}]\n"
    )
    (case,) = study.load(write(tmp_path, text))
    assert case.name == "own"
    assert case.counts == [3]
    assert [operation.label for operation in case.operations] == ["write", "read-rows(count=2)"]


VALID = "formats: [hdf5]\noperations: [write]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (VALID + "shape: [8]\nshpae: [9]\n", ["shpae", "unknown key", "shapes"]),
        (VALID + "shape: [8, -1]\n", ["shapes.0.1", "greater than 0"]),
        (VALID + "shape: [8]\ncount: -3\n", ["counts.0", "greater than 0"]),
        ("formats: [hdf6]\noperations: [write]\nshape: [8]\n", ["unknown format 'hdf6'", "did you mean 'hdf5'?"]),
        ("formats: [hdf5]\noperations: [wriet]\nshape: [8]\n", ["unknown operation 'wriet'", "did you mean 'write'?"]),
        ("formats: [hdf5]\noperations: [xyz]\nshape: [8]\n", ["unknown operation 'xyz'; choose from", "read-all"]),
        (VALID + "shape: [8]\ndtype: floaty\n", ["floaty", "did you mean 'float"]),
        (VALID + "shape: [8\n", ["not a YAML file"]),
        ("- 1\n", ["mapping"]),
        ("NUMBER_ELEMENTS: [8]\nNUMBER_DATASET: 2\n", ["NUMBER_DATASET", "NUMBER_DATASETS"]),
    ],
)
def test_a_mistake_is_named_with_its_remedy(tmp_path: Path, text: str, said: list[str]) -> None:
    with pytest.raises(StudyError) as caught:
        study.load(write(tmp_path, text))
    message = str(caught.value)
    assert "own.yaml" in message
    assert "\n" not in message
    assert all(word in message for word in said)


def test_scaling_keeps_what_a_scale_does_not_say() -> None:
    case = CASES["cost-model-neuroscience"]
    quick = scaled(case, "quick")
    assert quick.formats == case.formats
    assert set(quick.conditions) < set(case.conditions)
    assert np.prod(quick.shapes[0]) < np.prod(case.shapes[0])


def _partial_reads(case: Case) -> list[tuple[str, str]]:
    kinds = study_operations.OPERATIONS
    reads = [o for o in case.operations if kinds[o.name].verb == "read" and kinds[o.name].slices]
    return [(o.name, name) for o in reads for name, said in case.conditions.items() if _has_chunks(said)]


def _has_chunks(said: object) -> bool:
    return said != "default" and getattr(said, "chunks", "contiguous") != "contiguous"


@pytest.mark.parametrize("scale", ["quick", "small"])
def test_the_automatic_rule_keeps_the_ratio_of_chunk_to_access(scale: str) -> None:
    case = Case(
        name="maps-or-series",
        shapes=[[365, 180, 360]],
        data="waves",
        formats=["hdf5", "zarr3"],
        conditions={
            "map-chunks": {"chunks": [1, 180, 360]},
            "cubes": {"chunks": [32, 45, 45]},
        },
        operations=["read-map", "read-time-series"],
    )
    here = scaled(case, scale)
    assert scale != "quick" or here.shapes != case.shapes
    note = scaling.scale_note(case, here, scale)
    assert "Unlike" not in note
    assert "as many elements for each element" in note
    before, after = case.shapes[0], here.shapes[0]
    for operation in case.operations:
        for chunks in ([1, 180, 360], [32, 45, 45]):
            kept = scaling.amplification(operation, after, chunks) / scaling.amplification(operation, before, chunks)
            assert 0.9 <= kept <= 1.1


@pytest.mark.parametrize("scale", ["quick", "small"])
def test_shipped_studies_keep_the_ratio_or_say_what_changed(scale: str) -> None:
    assert _partial_reads(CASES["mine"])
    assert "Unlike" not in scaling.scale_note(CASES["mine"], scaled(CASES["mine"], scale), scale)
    table = CASES["cost-model-neuroscience"]
    note = scaling.scale_note(table, scaled(table, scale), scale)
    assert "read-random-rows" in note
    assert "instead of 69,649" in note


def test_at_full_size_there_is_nothing_to_say() -> None:
    assert scaling.scale_note(CASES["mine"], scaled(CASES["mine"], "paper"), "paper") == ""


def test_a_ratio_that_cannot_be_kept_is_in_the_caption() -> None:
    """Whole chunks of `auto` (46 × 45 × 90) are part of one more chunk of `cubes`, so a time series decodes more."""
    case = Case(
        name="two-layouts",
        shapes=[[365, 180, 360]],
        data="waves",
        formats=["hdf5"],
        conditions={"auto": {"chunks": "auto"}, "cubes": {"chunks": [32, 45, 45]}},
        operations=["read-map", "read-time-series"],
    )
    here = scaled(case, "quick")
    assert here.shapes == [[46, 90, 90]]
    note = scaling.scale_note(case, here, "quick")
    before, after = 12 * 32 * 45 * 45 / 365, 2 * 32 * 45 * 45 / 46  # chunks along time, elements, elements asked for
    said = f"read-time-series, cubes, decodes {after:,.0f} instead of {before:,.0f} elements for each one asked"
    assert f"Unlike the study in full, {said}." in note, "and nothing about the other three reads, which keep theirs"
