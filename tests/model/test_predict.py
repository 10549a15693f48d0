"""`hyperslab predict` and `hs.predict`, with made-up store profiles and with one that a tiny calibration measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up import made_up_store_profile
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.cli import app
from hyperslab.errors import HyperslabError, NotAStoreProfile, Refused, Untrained, UsageError
from hyperslab.model import Layout, Workload, load_store_profile
from hyperslab.model.costs import CodecRate
from hyperslab.model.predict import parse_layout, too_close
from hyperslab.model.training import SIZES, smaller

pytestmark = pytest.mark.usefixtures("prepared_workers")

BOXES = """
array: {shape: [2000, 64], dtype: float32}
accesses: [{select: random-boxes, count: 20, shape: [100, 8]}]
"""
runner = CliRunner()


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "boxes.yaml"
    path.write_text(BOXES)
    return path


@pytest.fixture(scope="module")
def store_profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made_up") / "profile.json"
    made_up_store_profile(path.parent).save(path)
    return path


def test_the_fastest_comes_first(workload: Path, store_profile: Path) -> None:
    found = hs.predict(workload, [(100, 8), Layout((1, 1))], store_profile=store_profile)
    assert len(found) == 4
    assert found == sorted(found, key=lambda prediction: prediction.cost.seconds)
    assert (found[0].library, str(found[0].layout)) == ("hdf5", "100x8")
    assert (found[-1].library, str(found[-1].layout)) == ("zarr", "1x1")


def test_reads_and_writes_are_priced_by_their_own_coefficients(store_profile: Path) -> None:
    one = {"select": "random-rows", "count": 5}
    kinds = [[one], [{**one, "operation": "write"}], [one, {**one, "operation": "write"}]]
    asked = [Workload.model_validate({"array": {"shape": [500, 20]}, "accesses": accesses}) for accesses in kinds]
    read, write, both = (hs.predict(each, [(50, 5)], store_profile=store_profile)[0] for each in asked)
    assert set(both.variables) == {"read", "write"}
    assert both.variables["read"].n_array + both.variables["write"].n_array == 1
    assert both.cost.seconds < read.cost.seconds + write.cost.seconds


def test_a_codec_without_a_price_is_unknown_and_last(workload: Path, store_profile: Path) -> None:
    """It once cost nothing, so it came first."""
    plain, coded = Layout((100, 8)), Layout((100, 8), ratio=2.0, codec="lzf")
    found = hs.predict(workload, [coded, plain], libraries=["hdf5"], store_profile=store_profile)
    assert [prediction.layout for prediction in found] == [plain, coded]
    assert found[1].cost.unknown == ("codec lzf was not trained",)
    written = found[1].to_dict()
    assert (written["seconds"], written["high"], written["unknown"]) == (None, None, ["codec lzf was not trained"])
    assert json.dumps(written, allow_nan=False)
    unnamed = hs.predict(workload, [Layout((100, 8), ratio=2.0)], libraries=["hdf5"], store_profile=store_profile)
    assert unnamed[0].cost.unknown == ("the codec is not named",)
    with pytest.raises(Refused, match="zarr-python has no codec lzf"):
        hs.predict(workload, [coded], libraries=["zarr"], store_profile=store_profile)
    shown = runner.invoke(
        app, ["predict", str(workload), "--profile", str(store_profile), "--layout", "100x8:lzf=2", "--layout", "100x8"]
    )
    lines = [line for line in shown.stdout.splitlines() if "lzf" in line]
    assert "unknown" in lines[0]
    assert lines[-1].startswith("unknown: hdf5: codec lzf was not trained")


def test_overlapping_intervals_are_too_close_to_call(workload: Path, store_profile: Path) -> None:
    found = hs.predict(workload, [(100, 8), (101, 8), (1, 1)], store_profile=store_profile)
    near = too_close(found)
    assert [(each.library, each.layout.chunk_shape[0] >= 100) for each in near] == [("hdf5", True)] * 2
    assert too_close(found[2:3]) == []
    options = ["--profile", str(store_profile), "--layout", "100x8", "--layout", "101x8", "--layout", "1x1"]
    shown = runner.invoke(app, ["predict", str(workload), *options])
    line = next(line for line in shown.stdout.splitlines() if line.startswith("too close to call: "))
    assert line.count("hdf5") == 2
    assert "1x1" not in line
    predictions = json.loads(runner.invoke(app, ["predict", str(workload), *options, "--json"]).stdout)["predictions"]
    assert [each["too_close_to_call"] for each in predictions] == [True, True] + [False] * 4


def test_flat_is_there_once(workload: Path, tmp_path: Path) -> None:
    made_up_store_profile(tmp_path, ("hdf5", "flat")).save(tmp_path / "profile.json")
    layouts = [(100, 8), (50, 8), Layout((100, 8), ratio=2.0, codec="zstd")]
    found = hs.predict(workload, layouts, store_profile=tmp_path / "profile.json")
    assert [str(each.layout) for each in found if each.library == "flat"] == ["contiguous"]
    assert sum(each.library == "hdf5" for each in found) == 3


@pytest.mark.parametrize(
    ("given", "options", "error", "what"),
    [
        ([(100,)], {}, Refused, "1 axes, the array has 2"),
        ([(4000, 8)], {"libraries": ["hdf5"]}, Refused, "larger than the array"),
        ([Layout((100, 8), (200, 8))], {"libraries": ["hdf5"]}, Refused, "only Zarr has shards"),
        ([Layout((2000, 64), contiguous=True)], {"libraries": ["zarr"]}, Refused, "cannot store an array in one piece"),
        ([Layout((100, 8), contiguous=True)], {"libraries": ["hdf5"]}, Refused, "has the array's shape"),
        ([(100, 8)], {"libraries": ["csv"]}, UsageError, "unknown library 'csv'"),
        ([(100, 8)], {"libraries": ["flat"]}, Untrained, "has no flat"),
        ([(100, 8)], {"cache": "new"}, Refused, "nothing to read"),
        ([], {}, UsageError, "no layouts"),
    ],
)
def test_what_cannot_be(
    given: Any, options: Any, error: type[HyperslabError], what: str, workload: Path, store_profile: Path
) -> None:
    with pytest.raises(error, match=what):
        hs.predict(workload, given, store_profile=store_profile, **options)


def test_chunks_that_hdf5_cannot_hold(store_profile: Path) -> None:
    large = Workload.model_validate({"array": {"shape": [2**31, 4]}, "accesses": [{"select": "rows", "count": 1}]})
    with pytest.raises(Refused, match="HDF5 allows at most 4294967295"):
        hs.predict(large, [(2**30, 1), (2**30, 2)], libraries=["hdf5"], store_profile=store_profile)
    piece = Layout((2**31, 4), contiguous=True)
    assert hs.predict(large, [piece], libraries=["hdf5"], store_profile=store_profile)[0].cost.seconds > 0
    with pytest.raises(Refused, match="do not cache arrays that are in one piece"):
        hs.predict(large, [piece], libraries=["hdf5"], store_profile=store_profile, cache="library-warm")
    written = large.model_copy(update={"accesses": [large.accesses[0].model_copy(update={"operation": "write"})]})
    with pytest.raises(Refused, match="our engine only reads"):
        hs.predict(written, [(64, 4)], libraries=["hyperslab"], store_profile=store_profile)


def test_a_layout_has_the_axes_of_the_array(workload: Path, store_profile: Path, tmp_path: Path) -> None:
    """With a workload, only "flat" was left in the table, without a word; with an array it was a traceback."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.zeros((10, 20, 3))
    for target in (workload, f"{tmp_path / 'a.h5'}:x"):
        done = runner.invoke(app, ["predict", str(target), "--layout", "5", "--profile", str(store_profile)])
        assert isinstance(done.exception, Refused)
        assert "layout 5 has 1 axes, the array has" in str(done.exception)


def test_no_file_of_yours_is_taken_for_a_store_profile(tmp_path: Path) -> None:
    """The message of `predict` once proposed to calibrate over it."""
    path = tmp_path / "a.h5"
    path.write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(NotAStoreProfile) as caught:
        load_store_profile(path)
    assert f"-o {path}" not in str(caught.value)
    done = runner.invoke(app, ["calibrate", "-o", str(path)])
    assert "is not a store profile: choose another name" in str(done.exception)
    assert path.read_bytes() == b"\x89HDF\r\n\x1a\n"


def test_layouts_in_words() -> None:
    for text in ("100x8", "100x8/400x8", "100x8:zstd=2.5", "7"):
        assert str(parse_layout(text)) == text
    assert parse_layout("100x8:=2") == Layout((100, 8), ratio=2.0)
    for text, what in (
        ("100x", "is not a layout"),
        ("0x8", "is not a layout"),
        ("", "is not a layout"),
        ("4:zstd", "=2.5"),
        ("4:zstd=nan", "is not a layout"),
        ("4:zstd=0", "is not a layout"),
        ("99999999999999999999x8", "is not a layout"),
        ("5x5/7x7", "a shard has whole chunks"),
        ("5x5/10", "a shard has whole chunks"),
        ("4:nonsense=2", "codec 'nonsense' is unknown; choose from .*zstd"),
    ):
        with pytest.raises(UsageError, match=what):
            parse_layout(text)


def test_the_command(workload: Path, store_profile: Path, tmp_path: Path) -> None:
    figure = tmp_path / "costs.svg"
    options = ["--profile", str(store_profile), "--layout", "100x8", "--layout", "2000x1"]
    shown = runner.invoke(app, ["predict", str(workload), *options, "--figure", str(figure)])
    assert shown.exit_code == 0, shown.output
    assert "2000x1" in shown.stdout
    assert "memory copy" in figure.read_text()
    asked = runner.invoke(app, ["predict", str(workload), *options, "--json", "--libraries", "zarr"])
    document = json.loads(asked.stdout)
    assert [prediction["library"] for prediction in document["predictions"]] == ["zarr", "zarr"]
    first = document["predictions"][0]
    assert first["low"] <= first["seconds"] <= first["high"]
    assert first["seconds"] == pytest.approx(sum(first["phases"].values()))


def test_the_command_warns_of_another_machine(workload: Path, store_profile: Path, tmp_path: Path) -> None:
    made = load_store_profile(store_profile)
    other = replace(made, environment=replace(made.environment, cpu="Another"))
    other.save(tmp_path / "other.json")
    shown = runner.invoke(
        app, ["predict", str(workload), "--layout", "50x8", "--profile", str(tmp_path / "other.json")]
    )
    assert "calibrated on another machine" in shown.stderr


def test_the_layout_of_a_file(workload: Path, store_profile: Path, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        values = np.zeros((2000, 64), np.float32)
        file.create_dataset("x", data=values, chunks=(500, 32), compression="gzip")
        file.create_dataset("y", data=values)
        file.create_dataset("z", data=values[:5])
    predict = ["predict", str(workload), "--profile", str(store_profile), "--json", "--file"]
    document = json.loads(runner.invoke(app, [*predict, f"{tmp_path}/a.h5:x"]).stdout)
    assert document["predictions"][0]["layout"].startswith("500x32:deflate=")
    for where, what in (("a.h5", "name an array as FILE:ARRAY"), ("a.h5:z", "found: /z"), ("a.h5:w", "no such")):
        refused = runner.invoke(app, [*predict, f"{tmp_path}/{where}"])
        assert isinstance(refused.exception, UsageError)
        assert what in str(refused.exception)


def test_codecs_are_measured_on_the_users_data(workload: Path, store_profile: Path, tmp_path: Path) -> None:
    """The made-up profile has no codec at all, but a sample of the file says what its codec costs."""
    h5py = pytest.importorskip("h5py")
    noise = np.random.default_rng(1).normal(size=(2000, 64)).astype(np.float32)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=noise, chunks=(500, 32), compression="lzf")
    predict = ["predict", str(workload), "--profile", str(store_profile), "--json", "--file", f"{tmp_path}/a.h5:x"]
    done = runner.invoke(app, [*predict, "--layout", "500x32:deflate=1.1", "--libraries", "hdf5"])
    found = {each["codec"]: each for each in json.loads(done.stdout)["predictions"]}
    assert found["lzf"]["unknown"] == found["deflate"]["unknown"] == []
    assert all(each["seconds"] > 0 for each in found.values())


def test_a_measured_rate_is_what_a_codec_costs(workload: Path, store_profile: Path) -> None:
    layout = Layout((100, 8), ratio=2.0, codec="lzf")
    rates = {("hdf5", "lzf"): CodecRate(2e-9, 7e-9)}
    (found,) = hs.predict(workload, [layout], libraries=["hdf5"], store_profile=store_profile, codec_rates=rates)
    read = found.variables["read"]
    # The rate is beyond the same access without a codec, which reads more bytes.
    per_byte = {each.term.name: each.value for each in load_store_profile(store_profile).fits[0].each}["s_cache"]
    more = per_byte * (read.s_decode - read.s_decode_in)
    assert found.cost.phases["codec"] == pytest.approx(2e-9 * read.s_decode + more)
    assert found.cost.phases["codec"] > more > 0
    assert found.cost.low < found.cost.seconds < found.cost.high < float("inf")


def test_an_array_in_one_piece(workload: Path, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("y", data=np.zeros((2000, 64), np.float32))
    made_up_store_profile(tmp_path, ("hdf5", "zarr", "hyperslab")).save(tmp_path / "profile.json")
    predict = ["predict", str(workload), "--profile", str(tmp_path / "profile.json"), "--json"]
    document = json.loads(runner.invoke(app, [*predict, "--file", f"{tmp_path}/a.h5:y"]).stdout)
    found = {each["library"]: each["variables"]["read"] for each in document["predictions"]}
    assert {each["layout"] for each in document["predictions"]} == {"contiguous"}
    assert list(found) == ["hdf5", "hyperslab"]
    # rows of boxes; including gaps
    assert (found["hyperslab"]["n_memcpy"], found["hyperslab"]["n_rrequest"]) == (2000, 20)
    assert 0 < found["hdf5"]["n_rdisk"] + found["hdf5"]["n_cache"] <= 20 * 2  # of at most 64 KiB
    same = json.loads(runner.invoke(app, [*predict, "--layout", "contiguous"]).stdout)
    first = {key: value for key, value in document["predictions"][0].items() if key != "max_shape"}
    assert same["predictions"][0] == first, "HDF5's array is where the model has it"


def test_the_version_of_hdf5_decides_its_cache(workload: Path, store_profile: Path, tmp_path: Path) -> None:
    """Chunks of 4 MiB fit into the cache of HDF5 2.0, but not into that of 1.14."""
    path = tmp_path / "rows.yaml"
    array = "array: {shape: [65536, 64], dtype: float32}"
    path.write_text(f"{array}\naccesses: [{{select: rows, count: 3}}]\n")
    options = ["--profile", str(store_profile), "--layout", "16384x64", "--libraries", "hdf5", "--json"]

    def read(*more: str, file: Path = path) -> float:
        done = runner.invoke(app, ["predict", str(file), *options, *more])
        return float(json.loads(done.stdout)["predictions"][0]["variables"]["read"]["s_rdisk"])

    chunk = 16384 * 64 * 4
    assert read("--hdf5", "2.0") >= chunk
    assert read("--hdf5", "1.14") < chunk
    assert read("--hdf5", "1.14", "--rdcc-nbytes", "8388608", "--rdcc-nslots", "8191") == read("--hdf5", "2.0")
    said = tmp_path / "said.yaml"
    said.write_text(path.read_text() + 'hdf5: {version: "1.14", libver: latest}\n')
    assert read(file=said) < chunk
    assert read("--hdf5", "2.0", file=said) >= chunk
    for wrong in (["--hdf5", "new"], ["--rdcc-w0", "2"], ["--libver", "v999"]):
        refused = runner.invoke(app, ["predict", str(path), *options, *wrong])
        assert isinstance(refused.exception, UsageError)
        assert wrong[0] in str(refused.exception)


@pytest.mark.parametrize("option", [["--cache", "hot"], ["--figure", "costs.pdf"], ["--layout", "eight"]])
def test_wrong_options(option: list[str], workload: Path, store_profile: Path) -> None:
    refused = runner.invoke(app, ["predict", str(workload), "--profile", str(store_profile), *option])
    assert isinstance(refused.exception, UsageError)


def test_a_tiny_calibration_predicts(workload: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("h5py")
    tiny = replace(
        smaller(SIZES["quick"], 64),
        drawn=replace(smaller(SIZES["quick"], 64).drawn, arrays=3, patterns=3, layouts=1),
        doublings=(0, 7),
        wide_shape=(64, 2048),
        wide_chunks=((16, 256),),
        encoded_chunks=(),
        large_chunks=(),
    )
    monkeypatch.setitem(SIZES, "quick", tiny)
    measured = tmp_path / "measured"
    measured.mkdir()
    options = ["--quick", "--dir", str(measured), "--libraries", "hdf5", "-o", str(tmp_path / "new" / "tiny.json")]
    done = runner.invoke(app, ["calibrate", "--no-wait", *options])
    assert done.exit_code == 0, done.output
    assert "hdf5" in done.stdout
    assert list(measured.iterdir()) == [], "nothing is left"
    made = load_store_profile(tmp_path / "new" / "tiny.json")
    assert made.libraries == ("hdf5",)
    assert made.differs_from_this_machine(tmp_path) == []
    assert {cell.cache for cell in made.cells} == {"cold", "page-warm", "library-warm", "new"}
    found = hs.predict(workload, [(50, 8)], store_profile=made)
    assert found[0].cost.seconds > 0


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--quick", "--full"], "exclude each other"),
        (["--dir", "no/such/directory"], "is not a directory"),
        (["--libraries", "csv"], "cannot be calibrated"),
    ],
)
def test_wrong_calibrations(options: list[str], what: str) -> None:
    refused = runner.invoke(app, ["calibrate", *options])
    assert isinstance(refused.exception, UsageError)
    assert what in str(refused.exception)
