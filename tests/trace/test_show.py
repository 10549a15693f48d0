"""What is said of a trace is true: chunks, read amplification, decoding, patterns, advice, and the page."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import Tags, array_of, made_trace
from typer.testing import CliRunner

import hyperslab as hs
from draws import few
from hyperslab._core import reuse_distances
from hyperslab.advise.counsel import counsels_on
from hyperslab.advise.tip import Tip
from hyperslab.advise.traced_demands import SummarizedTrace
from hyperslab.archive.views.display import counted
from hyperslab.cli import app
from hyperslab.model.store_profile import StoreProfile
from hyperslab.trace import chunk_touches, selection
from hyperslab.trace.chunk_touches import all_touched, decode_count, grid_shape, touched
from hyperslab.trace.growing import with_largest_shapes
from hyperslab.trace.recording import log as raw
from hyperslab.trace.recording.hooks import location
from hyperslab.trace.summaries import busy_seconds, summaries_of, timeline
from hyperslab.trace.table import COLUMNS, TracedArray

sys.path.insert(0, str(Path(__file__).parents[1] / "model"))
from made_up import made_up_cells, made_up_store_profile

runner = CliRunner()


@st.composite
def hyperslabs(draw: st.DrawFn) -> tuple[int, list[int], tuple[int, ...], tuple[int, ...]]:
    shape, chunks, numbers = [], [], []
    for _ in range(draw(st.integers(1, 3))):
        start, count, block = draw(st.integers(0, 5)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
        stride = block + draw(st.integers(0, 6))
        numbers += [start, stride, count, block]
        shape.append(start + (count - 1) * stride + block + draw(st.integers(0, 3)))
        chunks.append(draw(st.integers(1, 6)))
    return raw.HYPERSLAB, numbers, tuple(shape), tuple(chunks)


@given(hyperslabs())
def test_touched_chunks_are_those_with_a_selected_element(one: Any) -> None:
    kind, numbers, shape, chunks = one
    elements = np.argwhere(selection.mask(kind, np.array(numbers), shape))
    truth = np.unique(np.ravel_multi_index(tuple((elements // chunks).T), grid_shape(shape, chunks)))
    assert touched(kind, np.array(numbers), shape, chunks).tolist() == truth.tolist()


@settings(max_examples=few(100))
@given(data=st.data(), most=st.integers(15, 60))  # no selection alone has more than 15
def test_the_chunks_of_all_accesses_are_those_of_each(data: st.DataObject, most: int) -> None:
    """Very many accesses are looked at together; one after the other gives the same."""
    shape, chunks = (20, 9, 6), (4, 9, 2)
    bounds = [st.tuples(st.integers(0, n - 1), st.integers(1, n), st.integers(1, 9)) for n in shape]
    one = st.tuples(*bounds).map(lambda key: tuple(slice(a, a + n, step) for a, n, step in key))
    keys = data.draw(st.lists(st.one_of(one, st.just(np.s_[...])), min_size=1, max_size=12))
    trace = made_trace(keys, array_of(shape, chunks))
    rows = data.draw(st.lists(st.integers(0, len(keys) - 1), max_size=20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_touches, "MOST_TOUCHES", most)
        found = all_touched(trace, rows, shape, chunks)
    expected: list[list[int]] = []
    for row in rows:
        if sum(map(len, expected)) >= most:
            break
        mine = touched(*trace.selection(row), shape, chunks).tolist()
        expected.append(mine[: most - sum(map(len, expected))])
    split = np.split(found.chunks, found.offsets[1:-1]) if found.selection_count else []
    assert [part.tolist() for part in split] == expected
    order = found.sorted_order()
    assert order.tolist() == sorted(range(len(expected)), key=lambda k: expected[k][0] if expected[k] else -1)
    assert found.reordered(order).tolist() == [chunk for k in order for chunk in expected[k]]


def test_a_long_trace_takes_seconds(tmp_path: Path) -> None:
    """100,000 random elements, which touch the chunks in no order: every step of the summary sees all of them."""
    array = array_of((1000, 1000), (10, 100), cache_nbytes=1 << 16, cache_slots=521, cache_w0=0.75)
    indices = np.random.default_rng(1).integers(0, 1000, (100_000, 2))
    numbers = np.ones((len(indices), 2, 4), np.int64)
    numbers[:, :, 0] = indices
    columns = {name: np.zeros(len(indices), dtype) for name, dtype in COLUMNS.items()}
    columns["kind"][:], columns["nbytes"][:], columns["duration_ns"][:] = raw.HYPERSLAB, 4, 1000
    made_up_store_profile(tmp_path).save(tmp_path / "profile.json")
    trace = hs.Trace([array], columns, np.arange(len(indices) + 1) * 8, numbers.reshape(-1))
    trace.save(tmp_path / "run.trace")
    printed = shown(tmp_path / "run.trace", "--profile", str(tmp_path / "profile.json"))
    assert "100,000 reads of single elements (1 × 1), in random order" in printed
    assert re.search(r"predicted +.* for 20,000 of its accesses, from a cold cache \(measured: 20.0 ms\)", printed), (
        printed
    )
    distinct = len(np.unique(indices[:, 0] // 10 * 10 + indices[:, 1] // 100))
    assert f"{distinct:,} of 1,000 touched, 100,000 times in all" in printed


@given(st.lists(st.integers(0, 8), max_size=60), st.integers(0, 9))
def test_decoding_by_a_cache_that_forgets_the_oldest(chunks: list[int], capacity: int) -> None:
    kept: list[int] = []
    decoded = 0
    for chunk in chunks:
        if chunk in kept:
            kept.remove(chunk)
        else:
            decoded += 1
        kept = [*kept, chunk][-capacity:] if capacity else []
    assert decode_count(reuse_distances(np.array(chunks, np.int64)), capacity) == decoded


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (np.s_[...], "the whole array"), (np.s_[3], "rows"), (np.s_[2:4], "rows"), (np.s_[:, 1], "columns"),
        (np.s_[1:3, 2:5], "boxes"), (np.s_[::2], "strided boxes"), (np.s_[3, 4], "single elements"),
    ],
)  # fmt: skip
def test_names_of_patterns(key: Any, name: str) -> None:
    (one,) = summaries_of(made_trace([key], array_of((10, 8), (5, 4))))
    assert [pattern.name for pattern in one.patterns] == [name]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ([np.s_[k] for k in range(10)], "10 reads of rows (1 × 8), in order along axis 0"),
        ([np.s_[:, k] for k in range(8)], "8 reads of columns (10 × 1), in order along axis 1"),
        ([np.s_[3]] * 5, "5 reads of rows (1 × 8), always the same"),
        ([np.s_[k] for k in (5, 1, 7, 2, 9, 0, 4, 3)], "8 reads of rows (1 × 8), in random order"),
        ([np.s_[k, j] for j in range(8) for k in range(10)],
         "80 reads of single elements (1 × 1), in order, in loops over axes 1, 0 (the innermost last)"),
        ([np.s_[k] for k in range(10)] * 2,
         "20 reads of rows (1 × 8), in order along axis 0; 10 repeat an earlier one"),
        ([np.s_[...]], "1 read of the whole array"),
    ],
)  # fmt: skip
def test_words_of_patterns(keys: list[Any], words: str) -> None:
    (one,) = summaries_of(made_trace(keys, array_of((10, 8), (5, 4))))
    assert [pattern.words for pattern in one.patterns] == [words]


def tips_of(trace: hs.Trace, profile: StoreProfile | None = None) -> list[Tip]:
    """What helps with the only array of a trace."""
    ((_, counsel),) = counsels_on(SummarizedTrace(Path("run.trace"), trace, summaries_of(trace)), profile)
    assert not isinstance(counsel, str)
    return counsel.tips


def columns_of(cache_nbytes: int) -> hs.Trace:
    """Columns of a table that is stored in chunks of 100 × 10: each chunk is decoded ten times without a cache."""
    array = array_of((1000, 200), (100, 10), cache_nbytes=cache_nbytes, cache_slots=521, cache_w0=0.75)
    return made_trace([np.s_[:, k] for k in range(200)], array)


def test_figures_on_chunks() -> None:
    (one,) = summaries_of(columns_of(0))
    assert (one.chunk_count, one.touched_count, one.touch_count, one.decoded_count) == (200, 200, 2000, 2000)
    assert one.read_amplification == 10
    assert one.seconds == pytest.approx(1.0)
    assert one.sorted_decoded_count == 2000  # no order helps without any cache
    (cached,) = summaries_of(columns_of(10 * 4000))
    assert cached.decoded_count == 200


def test_the_advised_cache_is_the_smallest_that_decodes_each_chunk_once(tmp_path: Path) -> None:
    columns_of(0).save(tmp_path / "run.trace")
    document = json.loads(shown(tmp_path / "run.trace", "--json"))
    cache = next(one for one in document["advice"] if "chunk cache" in one["what"])
    assert (cache["decoded_now"], cache["decoded_then"]) == (2000, 200)
    assert cache["call"].startswith("h5py.File('/no/a.h5', rdcc_nbytes=1048576, rdcc_nslots=")
    assert cache["seconds_now"] is None


def test_another_order_is_advised_if_it_helps() -> None:
    array = array_of((100, 100), (10, 100), cache_nbytes=5000, cache_slots=521, cache_w0=0.75)
    rows = [np.s_[10 * k + j] for j in range(10) for k in range(10)]
    order = next(one for one in tips_of(made_trace(rows, array)) if "order the loops" in one.what)
    assert order.decoded == (100, 10)


def test_reads_in_the_order_of_the_chunks_get_no_such_advice() -> None:
    array = array_of((100, 100), (10, 100), cache_nbytes=5000, cache_slots=521, cache_w0=0.75)
    assert not [one for one in tips_of(made_trace([np.s_[k] for k in range(100)], array)) if one.decoded]


@pytest.mark.parametrize("is_slow", [False, True])
def test_what_would_take_longer_is_not_advised(is_slow: bool, tmp_path: Path) -> None:
    from hyperslab.model import fit

    slow = {"n_chunk": 1.0} if is_slow else {"n_chunk": 1e-9, "n_call": 1e-9, "n_array": 1e-9}
    made = made_up_store_profile(tmp_path)
    cells = made_up_cells("hyperslab", "read", 90, 7, noise=0.02, **slow)
    cells = [*made.cells, *cells]
    profile = replace(made, cells=tuple(cells), fits=(*made.fits, fit(cells, "hyperslab", "read")), _fitted={})
    array = array_of((1000, 100), (100, 100), cache_nbytes=5000, cache_slots=521, cache_w0=0.75)
    found = tips_of(made_trace([np.s_[k] for k in range(100)], array), profile)
    assert any("hyperslab run" in one.call for one in found) == (not is_slow)
    assert all(not one.price.unknown for one in found)


@pytest.mark.parametrize(
    ("change", "is_served"),
    [
        ({}, True),
        ({"filters": ()}, False),
        ({"cache_nbytes": 1 << 22}, False),
        ({"chunks": (100, 100)}, False),
        ({"dtype": "object"}, False),
        ({"layout": "virtual"}, False),
        ({"file": "<_io.BytesIO object at 0x7f>"}, False),
        ({"file": "<File-like object MemoryFileSystem, /s.h5>"}, False),
        ({"file": "https://host/s.h5"}, False),
    ],
)
def test_only_reads_that_run_serves_get_the_advice_to_use_it(change: dict[str, Any], is_served: bool) -> None:
    """Columns of 100 elements are small, unless libhdf5's cache is too small for all chunks that they are in."""
    array = replace(array_of((100, 10_000), (1, 5_000), cache_nbytes=1 << 20), **change)
    found = tips_of(made_trace([np.s_[:, k] for k in range(100)], array))
    assert any("hyperslab run" in one.call for one in found) == is_served


def test_an_open_file_of_python_is_named_as_what_it_is_and_has_no_price_of_a_local_disk(tmp_path: Path) -> None:
    """It was named `s.h5>`, and priced as if it lay on the disk of the store profile."""
    fsspec, h5py = pytest.importorskip("fsspec"), pytest.importorskip("h5py")
    with fsspec.open("memory://folder/s.h5", "wb") as opened, h5py.File(opened, "w") as file:
        file.create_dataset("sst", data=np.arange(40_000.0).reshape(200, 200), chunks=(10, 200), compression="gzip")
    with fsspec.open("memory://folder/s.h5", "rb") as opened, hs.record() as trace, h5py.File(opened) as file:
        for k in range(200):
            file["sst"][:, k]
    (array,) = {one.array for one in trace}
    assert array.is_given
    assert array.title.endswith(":/sst")
    assert not array.title.startswith(("s.h5>", "<"))
    trace.save(tmp_path / "run.trace")
    profile = made_up_store_profile(tmp_path)
    profile.save(tmp_path / "profile.json")
    text = shown(tmp_path / "run.trace", "--profile", str(tmp_path / "profile.json"))
    assert "predicted" not in text
    assert "hyperslab run" not in text
    if "Without rewriting" in text:
        assert "no store profile says what it costs where this file is" in text


def test_names_of_open_files() -> None:
    file = "<File-like object MemoryFileSystem, /folder/s.h5>"
    given = array_of((4,), (2,))
    assert replace(given, file=file).title == "File-like object MemoryFileSystem, /folder/s.h5:/x"
    assert replace(given, file="<_io.BytesIO object at 0x7f12>").title == "_io.BytesIO object:/x"
    assert location(file) == file
    assert location("s3://bucket/a.h5") == "s3://bucket/a.h5"
    assert Path(location("a.h5")) == Path.cwd() / "a.h5"


def shown(trace: Path, *options: str) -> str:
    done = runner.invoke(app, ["trace", "show", str(trace), *options])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(autouse=True)
def no_calibration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))


def test_what_can_be_had_at_once_comes_first(tmp_path: Path) -> None:
    columns_of(0).save(tmp_path / "run.trace")
    text = shown(tmp_path / "run.trace")
    assert text.startswith(
        "Without rewriting any data:\n1. a.h5:/x: Open the file with a chunk cache of 1 MiB: 2,000 chunks"
    )
    assert "seconds unknown: run `hyperslab calibrate` once" in text
    assert "200 accesses to 1 array: 1.00 s in reading and writing, 50 % of its 2.00 s." in text


def test_predicted_seconds_with_a_calibration(tmp_path: Path) -> None:
    made_up_store_profile(tmp_path).save(tmp_path / "profile.json")
    columns_of(0).save(tmp_path / "run.trace")
    document = json.loads(shown(tmp_path / "run.trace", "--json", "--profile", str(tmp_path / "profile.json")))
    cache = next(one for one in document["advice"] if "chunk cache" in one["what"])
    assert 0 < cache["seconds_then"] < cache["seconds_now"]


def test_predict_prices_a_trace(tmp_path: Path) -> None:
    made_up_store_profile(tmp_path).save(tmp_path / "profile.json")
    columns_of(8 << 20).save(tmp_path / "run.trace")
    words = ["predict", "--trace", str(tmp_path / "run.trace"), "--profile", str(tmp_path / "profile.json")]
    done = runner.invoke(app, [*words, "--layout", "1000x1", "--cache", "page-warm", "--json"])
    assert done.exit_code == 0, done.output
    (array,) = json.loads(done.stdout)["arrays"]
    assert array["measured_seconds"] == pytest.approx(1.0)
    assert {one["layout"] for one in array["predictions"]} == {"100x10", "1000x1"}
    boxes = [{"start": [0, k], "shape": [1000, 1]} for k in range(200)]
    same = hs.predict(
        hs_workload({"shape": [1000, 200], "dtype": "float32"}, [{"select": "list", "boxes": boxes}]),
        [(100, 10)], libraries=["hdf5"], store_profile=tmp_path / "profile.json", cache="page-warm",
    )  # fmt: skip
    mine = next(one for one in array["predictions"] if (one["library"], one["layout"]) == ("hdf5", "100x10"))
    assert mine["seconds"] == pytest.approx(same[0].cost.seconds)
    assert array["predicted_seconds"] == pytest.approx(mine["seconds"])
    text = runner.invoke(app, words)
    assert "measured with h5py, 100x10: 1.00 s; predicted for that, cold:" in text.stdout


def hs_workload(array: dict[str, Any], accesses: list[Any]) -> Any:
    from hyperslab.model import Workload

    return Workload.model_validate({"array": array, "accesses": accesses})


def test_predict_says_what_is_missing(tmp_path: Path) -> None:
    for words, said in (
        (["predict"], "or a trace with --trace"),
        (["predict", "--trace", str(tmp_path / "no")], "there is no trace"),
        (["trace", "show", str(tmp_path / "no")], "there is no trace"),
    ):
        done = runner.invoke(app, words)
        assert done.exit_code != 0
        assert said in str(done.exception)


def test_the_page_is_well_formed_and_fetches_nothing(tmp_path: Path) -> None:
    array = TracedArray(
        "h5py", "/no/<b>.h5", "/<script>x</script>", (1000, 200), (100, 10), None, "<f4", 4, (), "chunked"
    )
    made_trace([np.s_[:, k] for k in range(50)], array).save(tmp_path / "run.trace")
    shown(tmp_path / "run.trace", "--html", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert "script" not in tags.counts
    assert tags.counts["rect"] >= 200
    assert not re.search(r"https?://", page)


def test_the_timeline_adds_up() -> None:
    trace = columns_of(0)
    reads, writes = timeline(trace, 10)
    assert sum(reads) == pytest.approx(1.0)
    assert reads == pytest.approx([0.1] * 10)
    assert sum(writes) == 0
    assert busy_seconds(trace) == pytest.approx(1.0)


def test_an_array_that_grows_is_one_array(tmp_path: Path) -> None:
    """A program appends rows: after each, the array has another shape. It reads the whole array twice in between."""
    steps, columns = 40, 7
    arrays = [array_of((step, columns), (8, columns)) for step in range(1, steps + 1)]
    traces = [made_trace([np.s_[step : step + 1, :]], array) for step, array in enumerate(arrays)]
    traces[9] = made_trace([np.s_[...]], arrays[9])
    traces.append(made_trace([np.s_[...]], arrays[-1]))
    joined = {name: np.concatenate([one.columns[name] for one in traces]) for name in COLUMNS}
    joined["array"] = np.array([*range(steps), steps - 1], np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(one.numbers) for one in traces])])
    trace = hs.Trace(arrays, joined, offsets, np.concatenate([one.numbers for one in traces]))
    found = with_largest_shapes(trace)
    assert [one.shape for one in found.arrays] == [(steps, columns)]
    assert found.columns["nbytes"].tolist() == trace.columns["nbytes"].tolist()
    for row, key in enumerate([*(np.s_[step] for step in range(9)), np.s_[:10], *range(10, steps), np.s_[...]]):
        expected = np.zeros((steps, columns), bool)
        expected[key] = True
        np.testing.assert_array_equal(selection.mask(*found.selection(row), (steps, columns)), expected)
    trace.save(tmp_path / "run.trace")
    (one,) = json.loads(shown(tmp_path / "run.trace", "--json"))["arrays"]
    assert (one["reads"], one["shape"], one["chunks_touched"]) == (steps + 1, [steps, columns], 5)


def test_a_trace_without_accesses(tmp_path: Path) -> None:
    hs.Trace().save(tmp_path / "run.trace")
    assert shown(tmp_path / "run.trace", "--html", str(tmp_path / "page.html")) == "No access to an array was seen.\n"
    assert json.loads(shown(tmp_path / "run.trace", "--json"))["accesses"] == 0


@settings(max_examples=few(30))
@given(data=st.data())
def test_any_trace_can_be_summarized(data: st.DataObject) -> None:
    ndim = data.draw(st.integers(0, 3))
    shape = tuple(data.draw(st.lists(st.integers(0, 9), min_size=ndim, max_size=ndim)))
    chunks = tuple(data.draw(st.lists(st.integers(1, 5), min_size=ndim, max_size=ndim)))
    keys = data.draw(st.lists(st.sampled_from([np.s_[...], *([np.s_[0:1]] if ndim else [])]), min_size=1, max_size=4))
    (one,) = summaries_of(made_trace(keys, array_of(shape, chunks or None)))
    assert json.dumps(one.to_dict())


def test_nouns_agree_with_their_counts() -> None:
    assert counted(1, "access", "accesses") == "1 access"
    assert counted(0, "access", "accesses") == "0 accesses"
    assert counted(1234, "access", "accesses") == "1,234 accesses"


def test_what_the_time_went_into(tmp_path: Path) -> None:
    """The parts add up to the prediction, which has the codec's price on the file's own data if the file is there."""
    h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
    from dataclasses import replace

    made_up_store_profile(tmp_path).save(tmp_path / "profile.json")
    stored = {"chunks": (100, 10), "compression": "gzip", "shuffle": True}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.random.default_rng(1).random((1000, 200), "f4"), **stored)
    array = replace(array_of((1000, 200), (100, 10), cache_nbytes=0, cache_slots=521, cache_w0=0.75))
    found = {}
    for name, path in (("there", str(tmp_path / "a.h5")), ("gone", str(tmp_path / "no.h5"))):
        made_trace([np.s_[:, k] for k in range(200)], replace(array, file=path)).save(tmp_path / name)
        words = ("--profile", str(tmp_path / "profile.json"))
        (found[name],) = json.loads(shown(tmp_path / name, "--json", *words))["arrays"]
    there = found["there"]
    assert sum(there["predicted_parts"].values()) == pytest.approx(there["predicted_seconds"])
    assert there["predicted_parts"] != found["gone"]["predicted_parts"]
    assert list(there["predicted_parts"]) == ["device", "decoding", "copying", "library"]
    # 2000 chunks of 4000 bytes of noise are inflated: more than a millisecond on any machine.
    assert there["predicted_parts"]["decoding"] > 1e-3
    text = shown(tmp_path / "there", *words)
    assert re.search(r"predicted +\S+ m?s, from a cold cache \(measured: 1.00 s\): .*decoding", text)
