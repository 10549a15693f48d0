"""`hyperslab audit`: any number of files, folders and patterns; a line for each that fails; exit status for CI."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import audited_files
import h5py
import numpy as np
import pytest

from command_line import run_hyperslab
from hyperslab.audit.auditing import audits
from hyperslab.audit.file_audit import GRADES
from hyperslab.audit.judging import Question, audit_file
from hyperslab.audit.ledger import Ledger
from hyperslab.audit.names import file_names

Kept = Callable[..., Path]
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
ODD_NAMES = ("two words.nc", "new\nline.nc", "\x1b[31mred.nc", "tab\t.nc", "<b>bold<b>.nc", "über.nc")


@pytest.fixture(scope="module")
def archive(kept: Kept) -> Path:
    """Files of every kind, in folders, two of each."""
    folders = {kept(kind, seed).parent.parent for kind in audited_files.MAKERS for seed in range(2)}
    (folder,) = folders
    (folder / "readme.txt").write_text("not looked at")
    return folder


def test_json_has_every_file_the_worst_first_and_the_sums(archive: Path) -> None:
    done = run_hyperslab("audit", archive, "--json")
    assert done.returncode == 1
    assert "4 of 16 files are damaged or cannot be read" in done.stderr
    made = json.loads(done.stdout)
    files, sums = made["files"], made["archive"]
    assert len(files) == sums["file_count"] == 16
    assert [GRADES.index(one["grade"]) for one in files] == sorted(GRADES.index(one["grade"]) for one in files)[::-1]
    assert sums["grades"] == {grade: sum(one["grade"] == grade for one in files) for grade in GRADES}
    for name, ours in (("nbytes", "nbytes"), ("open_request_count", "request_count"), ("seconds", "seconds")):
        assert sums[name] == pytest.approx(sum(one[ours] or 0 for one in files))
    groups = {group["kind"]: group for group in sums["groups"]}
    assert {kind: group["file_count"] for kind, group in groups.items()} == {
        kind: sum(kind in [fault["kind"] for fault in one["faults"]] for one in files) for kind in groups
    }
    assert groups["small-chunks"]["commands"][0].startswith("hyperslab convert ")


def test_text_answers_first_and_names_the_worst_with_their_remedies(archive: Path) -> None:
    said = run_hyperslab("audit", archive / "good", archive / "small-chunks", "--worst", "1").stdout.splitlines()
    assert said[0] == "Of 4 files, 2 are poor"
    assert any(line.startswith("chunks that are too small: 2 files") for line in said)
    assert sum(line.startswith("remedy: hyperslab convert") for line in said) == 1
    assert said[-1] == "… and 1 more that are not good: -o audit.html or --json has all of them"
    alone = run_hyperslab("audit", archive / "good" / "good-0.nc").stdout
    assert "good-0.nc: good: opening it takes 1 request" in alone
    assert "to open, 40 ms away: 1 request in 1 round" in alone


def test_a_required_property_decides_the_exit_status(archive: Path) -> None:
    for wanted, kind, status in (
        ("cloud", "good", 0),
        ("cloud", "small-chunks", 1),
        ("cmip7", "cut-coordinates", 1),
        ("cmip7", "good", 0),
        ("cmip7", "unreadable", 1),
    ):
        done = run_hyperslab("audit", archive / kind, "--require", wanted)
        assert done.returncode == status, done.stdout
        assert ("required, but not met" in done.stdout) == bool(status)
        assert (f"2 of 2 files do not meet --require {wanted}" in done.stderr) == bool(status)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--require", "cmip"], "did you mean 'cmip7'?"),
        (["-o", "page.pdf"], "end it with .html, .json, .parquet"),
        (["-o", "nowhere/page.html"], "create it first"),
        (["--round-trip", "-1"], "--round-trip"),
        (["--bandwidth", "fast"], "is not a size"),
        (["--threads", "0"], "use at least 1"),
        (["--worst", "-1"], "--worst"),
    ],
)
def test_a_wrong_request_is_refused_with_what_to_change(archive: Path, options: list[str], said: str) -> None:
    done = run_hyperslab("audit", archive / "good", *options)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_pattern_without_files_and_a_folder_without_array_files_are_refused(archive: Path, tmp_path: Path) -> None:
    for given in (archive / "*.none", tmp_path):
        done = run_hyperslab("audit", given)
        assert done.returncode == 2
        assert str(given) in done.stderr
    done = run_hyperslab("audit", tmp_path / "absent.nc", archive / "good")
    assert done.returncode == 1
    assert "absent.nc: unreadable: No such file" in done.stdout


def test_odd_names_stay_names_in_text_json_and_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="not installed: pip install 'hyperslab[arrow]'")
    folder = tmp_path / "odd"
    folder.mkdir()
    model = audited_files.drawn(tmp_path, "good")
    for name in ODD_NAMES:
        shutil.copy(model, folder / name)
    raw = os.fsencode(folder) + b"/\xff\xfe.nc"
    shutil.copy(model, raw)
    target = tmp_path / "facts.parquet"
    done = run_hyperslab("audit", folder, "-o", target, "-o", tmp_path / "a.json", "-o", tmp_path / "a.html", "--json")
    assert done.returncode == 1, done.stderr
    grades = {one["name"]: one["grade"] for one in json.loads(done.stdout)["files"]}
    assert grades == {str(folder / name): "good" for name in ODD_NAMES} | {os.fsdecode(raw): "unreadable"}
    assert "a name must be text in UTF-8" in done.stdout
    assert json.loads((tmp_path / "a.json").read_text()) == json.loads(done.stdout)
    table = parquet.read_table(target)
    assert (table.num_rows, table["grade"].to_pylist().count("good")) == (len(grades), len(ODD_NAMES))
    assert "<b>" not in (tmp_path / "a.html").read_text()
    text = run_hyperslab("audit", folder, folder / ODD_NAMES[2], "--require", "cmip7").stdout
    assert "\x1b" not in text


def test_files_are_named_once_in_folders_patterns_and_alone(archive: Path) -> None:
    folder = archive / "good"
    both = {str(folder / f"good-{seed}.nc") for seed in range(2)}
    assert set(file_names([str(folder)])) == set(file_names([str(folder / "*.nc")])) == both
    assert sorted(file_names([str(folder), str(folder / "*.nc"), *both])) == sorted(both)
    assert set(file_names([str(archive / "**" / "good-?.nc")])) == both
    assert len(list(file_names([str(archive)]))) == 16


def test_a_zarr_folder_is_one_file_and_those_in_a_folder_are_found(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
    made = zarr.open_group(tmp_path / "in" / "a.zarr", mode="w")
    made.create_array("x", data=np.zeros((4, 4)), chunks=(2, 2))
    assert list(file_names([str(tmp_path)])) == [str(tmp_path / "in" / "a.zarr")]
    found = audit_file(str(tmp_path / "in" / "a.zarr"), Question())
    assert (found.format, found.array_count, found.grade) == ("zarr", 1, "good")


def test_a_million_names_are_taken_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    class Entry:
        def __init__(self, number: int) -> None:
            self.name, self.path = f"{number}.nc", f"f/{number}.nc"

        def is_dir(self, *, follow_symlinks: bool = True) -> bool:
            return False

    class Entries:
        def __enter__(self) -> Entries:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def __iter__(self):  # type: ignore[no-untyped-def]
            for number in range(1_000_000):
                taken.append(number)
                yield Entry(number)

    monkeypatch.setattr("os.scandir", lambda _: Entries())
    monkeypatch.setattr("os.path.isdir", lambda name: name == "f")
    listed = audits(["f"], Question(), threads=2)
    found = [next(listed) for _ in range(20)]
    listed.close()
    assert {one.grade for one in found} == {"unreadable"}
    assert len(taken) <= 100


def test_the_ledger_keeps_files_on_disk_and_gives_them_the_worst_first(kept: Kept) -> None:
    found = [audit_file(str(kept(kind)), Question()) for kind in audited_files.MAKERS]
    with Ledger() as ledger:
        for one in found:
            ledger.add(one)
        assert list(ledger.worst_first()) == sorted(found, key=lambda one: -one.rank)
        ledger.add(found[0])
        assert len(list(ledger.worst_first())) == len(found) + 1


def test_a_file_that_changes_meanwhile_is_one_line(tmp_path: Path) -> None:
    path = audited_files.drawn(tmp_path, "scattered-metadata")
    whole, is_over = path.read_bytes(), threading.Event()

    def change() -> None:
        while not is_over.is_set():
            for part in (len(whole) // 3, len(whole) // 2, len(whole)):
                path.write_bytes(whole[:part])

    writer = threading.Thread(target=change)
    writer.start()
    try:
        found = [audit_file(str(path), Question()) for _ in range(30)]
    finally:
        is_over.set()
        writer.join()
    assert not [one.reason for one in found if "fault in hyperslab" in one.reason]
    assert audit_file(str(path), Question()).grade == "slow"


def test_special_files_are_lines(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.nc")
    (tmp_path / "empty.nc").touch()
    (tmp_path / "loop.nc").symlink_to("loop.nc")
    (tmp_path / "secret.nc").write_bytes(b"x")
    done = run_hyperslab("audit", tmp_path, "--json")
    assert {one["grade"] for one in json.loads(done.stdout)["files"]} == {"unreadable"}
    assert "Traceback" not in done.stderr


def is_ledger_open(process: int, scratch: str) -> bool:
    """Whether a process has a temporary file open there: then it is at work."""
    with contextlib.suppress(OSError):
        return any(str(one.readlink()).startswith(scratch) for one in Path(f"/proc/{process}/fd").iterdir())
    return False


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    model = audited_files.drawn(tmp_path, "tiny-arrays")
    for number in range(3000):
        os.link(model, folder / f"{number}.nc")
    line = [sys.executable, "-m", "hyperslab", "audit", str(folder), "-o", str(tmp_path / "page.html")]
    (tmp_path / "scratch").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "scratch")}
    running = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=environment)
    while running.poll() is None and not is_ledger_open(running.pid, str(tmp_path / "scratch")):
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=60)[1]
    assert (running.returncode, said.strip()) == (130, "hyperslab: interrupted")
    assert not (tmp_path / "page.html").exists()
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the foreign files are not here (../shared/corpus)")
def test_foreign_files_are_judged_without_a_fault_of_ours() -> None:
    given = [str(path) for path in sorted(CORPUS.rglob("*")) if path.is_file() and path.suffix not in (".md", ".py")]
    assert len(given) > 100
    for require, some in (("cloud", given[::2]), ("cmip7", given[1::2])):
        for one in audits(some, Question(require=require)):
            assert one.grade in GRADES
            assert "fault in hyperslab" not in one.reason, (one.name, one.reason)


def test_a_trace_replaces_the_usual_accesses(tmp_path: Path) -> None:
    path, trace = audited_files.drawn(tmp_path, "small-chunks"), tmp_path / "run.trace"
    program = f"import h5py\nwith h5py.File({str(path)!r}) as f:\n for k in range(0, 90, 3): f['sst'][k]\n"
    assert run_hyperslab("trace", "-o", trace, "--", sys.executable, "-c", program).returncode == 0
    made = json.loads(run_hyperslab("audit", path, "--trace", trace, "--json").stdout)
    (access,) = made["files"][0]["accesses"]
    assert (access["array"], access["nbytes"]) == ("/sst", 30 * 4096)
    assert access["access"] == "30 accesses of run.trace"
    assert 0 < access["request_count"] <= 30
    other = audited_files.drawn(tmp_path, "good")
    said = run_hyperslab("audit", other, "--trace", trace).stdout
    assert "note: the traced program did not read it" in said


def test_info_advise_says_the_same_of_one_file(tmp_path: Path) -> None:
    path = audited_files.drawn(tmp_path, "small-chunks")
    audited = run_hyperslab("audit", path).stdout.splitlines()
    shown = run_hyperslab("info", path, "--advise").stdout.splitlines()
    assert audited[0].removeprefix(f"{path}: ") in shown
    assert audited[1:] == shown[-len(audited) + 1 :]
    document = json.loads(run_hyperslab("info", path, "--advise", "--json").stdout)
    assert document["audit"] == json.loads(run_hyperslab("audit", path, "--json").stdout)["files"][0]


def test_h5py_opens_what_was_audited(tmp_path: Path) -> None:
    path = audited_files.drawn(tmp_path, "cut-coordinates")
    content = path.read_bytes()
    audit_file(str(path), Question(require="cloud"))
    assert path.read_bytes() == content
    with h5py.File(path) as file:
        assert file["time"].shape[0] > 0
