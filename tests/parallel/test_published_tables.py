"""Published tables: what must come out on Cori, tables of other machines, and tables that are wrong."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_machines import cells_of, drawn
from typer.testing import CliRunner

from draws import few
from hyperslab.cli import app
from hyperslab.errors import UsageError
from hyperslab.parallel.contended_storage import Coefficients, Load, seconds_of
from hyperslab.parallel.machine import Machine
from hyperslab.parallel.published import evaluate_published, pairs_of_modes
from hyperslab.parallel.published_cells import PublishedCell, matching, own_tables, read_cells, table_path

runner = CliRunner()
CORI = own_tables()["cori"]
HEADER = (
    "partition,file_system,app,direction,mode,processes,runs,files,gbytes,mb_per_request,osts,"
    "mib_s_q25,mib_s_median,mib_s_q75,scatter_log10"
)


def row(app: str, direction: str, mode: str, osts: str = "24", mib_s: float = 1e4, request: str = "1.049") -> str:
    return f"made-up,scratch{osts},{app},{direction},{mode},2048,9,1,2199,{request},{osts},1,{mib_s},2,0.2"


def table(tmp_path: Path, *rows: str, header: str = HEADER) -> Path:
    path = tmp_path / "machine.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_cori_comes_out_when_only_ior_is_known() -> None:
    found = evaluate_published(CORI, "app=ior").to_dict()["published"]
    assert found["cells"] == 8
    assert found["order_right"] == found["order_all"] == 12
    assert found["growth_right"] == found["growth_all"] == 4
    assert found["rmse_log10"] <= 0.20
    assert found["scatter_log10"] == pytest.approx(0.26, abs=0.01)
    assert all(one["rmse_log10"] > 2 * found["rmse_log10"] for one in found["baselines"].values())


def test_cori_comes_out_when_only_ior_with_512_processes_is_known() -> None:
    found = evaluate_published(CORI, "app=ior,processes=512").to_dict()["published"]
    assert (found["order_right"], found["growth_right"]) == (found["order_all"], found["growth_all"]) == (14, 8)
    assert found["rmse_log10"] <= 0.20


def test_the_calibrated_cells_are_met() -> None:
    made = evaluate_published(CORI, "app=ior")
    assert max(abs(each.error_log10) for each in made.predictions if each.calibrated) < 0.01


def test_the_command_prints_the_scores_and_what_is_assumed() -> None:
    text = runner.invoke(app, ["evaluate", "--published", "cori"]).stdout
    assert "12 of 12" in text
    assert "assumed: A shared file is striped over all targets" in text
    found = json.loads(runner.invoke(app, ["evaluate", "--published", "cori", "--json"]).stdout)["published"]
    assert {"cells", "order_all", "order_right", "growth_all", "growth_right", "rmse_log10"} <= found.keys()


def test_a_machine_with_other_targets_is_asked(tmp_path: Path) -> None:
    rows = []
    for osts, mib_s in (("24", 3e4), ("36", 4.5e4)):
        for direction in ("read", "write"):
            rows += [row("ior", direction, "file-per-process", osts, mib_s), row("ior", direction, "shared", osts, 9e3)]
            rows += [row("hacc", direction, "file-per-process", osts, mib_s, "600")]
            rows += [row("hdf5", direction, "shared", osts, 8e3, "134")]
    made = evaluate_published(table(tmp_path, *rows), "app=ior")
    by_name = {(p.cell.app, p.cell.direction, p.cell.osts): p for p in made.predictions}
    for osts, mib_s in ((24, 3e4), (36, 4.5e4)):
        for direction in ("read", "write"):
            hacc, hdf5 = by_name["hacc", direction, osts], by_name["hdf5", direction, osts]
            assert hacc.mib_s == pytest.approx(mib_s, rel=0.05)
            assert hdf5.mib_s < hacc.mib_s
        # Nodes that write the same targets exclude each other: not faster than one writer for each target.
        assert by_name["hdf5", "write", osts].mib_s < 9e3 * 1.05


def test_a_machine_without_targets_and_shared_files_is_predicted_from_what_is_usual(tmp_path: Path) -> None:
    rows = [row("ior", "write", "file-per-process", "", 2e4), row("hdf5", "read", "shared", "", 1e4, "")]
    made = evaluate_published(table(tmp_path, *rows), "app=ior")
    (predicted,) = [each for each in made.predictions if not each.calibrated]
    assert 1e3 < predicted.mib_s < 1e5
    assert predicted.high_mib_s > 3 * predicted.mib_s, "it is hardly known"
    assert any("32 targets" in each for each in made.assumptions)


def rmse_and_order(cells: list[PublishedCell], clear: float) -> tuple[float, list[bool]]:
    """Calibrated on IOR: the RMSE of the others, and which order is right where medians differ by `clear`."""
    machine = Machine([cell for cell in cells if cell.app == "ior"], cells)
    predicted = {cell.line: machine.mib_s(cell) for cell in cells}
    held = [cell for cell in cells if cell.app != "ior"]
    errors = [np.log10(predicted[cell.line] / cell.mib_s_median) for cell in held]
    right = []
    for a, b in pairs_of_modes(cells, {cell.line for cell in cells if cell.app == "ior"}):
        if max(a.mib_s_median, b.mib_s_median) > clear * min(a.mib_s_median, b.mib_s_median):
            right.append((predicted[a.line] < predicted[b.line]) == (a.mib_s_median < b.mib_s_median))
    return float(np.sqrt(np.mean(np.square(errors)))), right


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("osts", [True, False])
@pytest.mark.parametrize(("processes", "targets"), [(2048, (24, 24, 36)), (4096, (48,))])
def test_machines_that_were_simulated_are_predicted_from_ior_alone(
    processes: int, targets: tuple[int, ...], osts: bool, direct: bool
) -> None:
    errors, right = [], []
    for seed in range(4 if os.environ.get("HYPERSLAB_DRAWS") == "new" else 2):
        random = np.random.default_rng(seed)
        cells = [
            cell
            for k, count in enumerate(targets)
            for cell in cells_of(
                f"scratch{k}", drawn(random, processes, count), seed, osts=osts, direct=direct, line=2 + 8 * k
            )
        ]
        error, order = rmse_and_order(cells, 1.4)
        errors.append(error)
        right += order
    assert max(errors) <= 0.12
    assert all(right)


def test_gathered_requests_may_be_faster_than_files_for_each_process(tmp_path: Path) -> None:
    """As on file systems where thousands of files burden the targets more than one file does."""
    rows = [
        row("ior", "write", "file-per-process", "", 1.0e4, "4.194"), row("ior", "write", "shared", "", 1.7e4, "8.389"),
        row("hacc", "write", "file-per-process", "", 1.02e4, "217"), row("hdf5", "write", "shared", "", 1.6e4, "16.78"),
    ]  # fmt: skip
    # The metadata server is not what makes them slow: runs of HACC move eight times as much, and are no faster.
    many = [each.replace("2048", "16384") for each in rows]
    many = [each.replace("2199", "1100") for each in many[:2]] + [each.replace("2199", "8800") for each in many[2:]]
    found = evaluate_published(table(tmp_path, *many), "app=ior")
    assert found.scores.order_right == found.scores.order_all == 3
    assert found.scores.rmse_log10 < 0.06


def test_a_table_without_targets_and_requests_has_zeros_or_nothing(tmp_path: Path) -> None:
    rows = [
        row("ior", "write", "file-per-process", nothing, 2e4, nothing).replace(f"scratch{nothing},", "gpfs,")
        for nothing in ("", "0", "0.0", "nan")
    ]
    assert [(cell.osts, cell.mb_per_request) for cell in read_cells(table(tmp_path, *rows))] == [(None, None)] * 4
    made = evaluate_published(table(tmp_path, *rows, row("hacc", "write", "file-per-process", "0")), "app=ior")
    assert any("32 targets, where osts is empty or 0" in each for each in made.assumptions)


def test_every_cell_that_is_left_out_is_within_a_factor_of_three() -> None:
    cells = read_cells(CORI)
    for cell in cells:
        machine = Machine([each for each in cells if each is not cell], cells)
        assert 1 / 3 < machine.mib_s(cell) / cell.mib_s_median < 3, cell.name


loads = st.builds(
    Load,
    path=st.sampled_from(["own file", "shared, collective", "shared, direct"]),
    direction=st.sampled_from(["read", "write"]),
    processes=st.integers(1, 100_000),
    processes_per_node=st.floats(1, 64),
    targets=st.floats(1, 1000),
    mib_per_process=st.floats(1e-3, 1e5),
    piece_mib=st.floats(0.01, 64),
)
coefficients = st.builds(Coefficients, *[st.floats(1e-7, 10)] * 4, st.floats(0.1, 10))


@given(loads, coefficients, st.integers(1, 50))
@settings(max_examples=few(300), deadline=None)
def test_more_processes_never_move_fewer_bytes_a_second(load: Load, fitted: Coefficients, factor: int) -> None:
    def bandwidth(processes: int) -> float:
        each = Load(**{**vars(load), "processes": processes})
        parts = seconds_of(each, fitted)
        return processes * load.mib_per_process / (sum(parts.values()) - parts.get("metadata", 0.0))

    slow, fast = bandwidth(load.processes), bandwidth(load.processes * factor)
    assert fast >= slow * (1 - 1e-9)
    gathered = fitted.kappa if load.path == "shared, collective" else 1.0
    assert fast <= load.targets / (gathered * fitted.beta) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("header", "rows", "said"),
    [
        (HEADER.replace("osts,", ""), [], "line 1: the column osts is missing"),
        (HEADER.replace("app,", "").replace("osts,", ""), [], "line 1: the columns app, osts are missing"),
        (HEADER + ",app", [], "line 1: the column app is there twice"),
        (HEADER, [], "there are no cells"),
        (HEADER, [row("ior", "read", "shared"), "", row("ior", "up", "shared")], "line 4: direction is 'up'"),
        (HEADER, [row("ior", "read", "both")], "line 2: mode is 'both'"),
        (HEADER, [row("ior", "read", "shared").replace("2048", "many")], "line 2: processes is 'many'"),
        (HEADER, [row("ior", "read", "shared").replace("2048", "0")], "line 2: processes is 0"),
        (HEADER, [row("ior", "read", "shared").replace("2048", "1.5")], "line 2: processes is 1.5"),
        (HEADER, [row("ior", "read", "shared").replace("2199", "")], "line 2: gbytes is empty"),
        (HEADER, [row("ior", "read", "shared").replace("10000.0", "-inf")], "line 2: mib_s_median is -inf"),
        (HEADER, [row("ior", "read", "shared").replace("2199", "1e300")], "line 2: gbytes is 1e300"),
        (HEADER, [row("ior", "read", "shared").replace("10000.0", "1e-300")], "line 2: mib_s_median is 1e-300"),
        (HEADER, [row("ior", "read", "shared", "-1")], "line 2: osts is -1"),
        (HEADER, [row("ior", "read", "shared") + ",1"], "line 2: has 16 values for 15 columns"),
        (HEADER, [row("ior", "read", "shared")] * 401, "line 402: a table has at most 400 cells"),
        ("# a comment\n" + HEADER, [row("", "read", "shared")], "line 3: app is empty"),
    ],
)
def test_a_wrong_table_is_named_by_its_line(tmp_path: Path, header: str, rows: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        read_cells(table(tmp_path, *rows, header=header))


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b'"' * 300_000, b"a\n" * 9])
def test_what_is_no_table_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "no-table.csv"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"no-table\.csv"):
        read_cells(path)


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        ("ior", "COLUMN=VALUE"),
        ("program=ior", "COLUMN=VALUE"),
        ("app=nothing", "no cell satisfies"),
        ("direction=read|write", "nothing left to predict"),
    ],
)
def test_wrong_conditions_are_refused(conditions: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        evaluate_published(CORI, conditions)


def test_conditions_compare_numbers_as_numbers() -> None:
    assert len(matching(read_cells(CORI), "processes=512.0,app=ior|hacc_io_read")) == 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--published", "no-such.csv"], "neither a file nor a table"),
        (["--calibrate-on", "app=ior"], "needs --published"),
        (["--published", "cori", "--quick"], "can only be combined with --calibrate-on"),
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str], said: str) -> None:
    failed = runner.invoke(app, ["evaluate", *arguments])
    assert isinstance(failed.exception, UsageError)
    assert said in str(failed.exception)


def test_the_tables_of_the_package_have_names() -> None:
    assert table_path("cori") == CORI
