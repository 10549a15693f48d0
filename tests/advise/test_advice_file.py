"""The file by which `advise` tells `convert` what to write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hyperslab.conversion.advice import AdviceFile, AdvisedArray
from hyperslab.errors import UsageError

HEAD = '"schema": "hyperslab-advice", "version": 1, "source": "x"'


def test_it_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    array = AdvisedArray(format="zarr3", chunks=[1, 2], shards=[4, 4], codec="zstd", level=3, order=[1, 0])
    advice = AdviceFile(source="ocean.nc", arrays={"/sst": array})
    advice.save(tmp_path / "advice.json")
    assert AdviceFile.read(tmp_path / "advice.json") == advice
    saved = json.loads((tmp_path / "advice.json").read_text())
    assert (saved["schema"], saved["version"], list(saved["arrays"])) == ("hyperslab-advice", 1, ["/sst"])
    assert AdviceFile.read(saved) == advice


def test_your_own_file_keeps_what_it_leaves_out(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"arrays": {"/sst": {"codec": "zstd"}, "t": {"chunks": null}}}')
    advice = AdviceFile.read(tmp_path / "mine.json")
    assert (advice.is_complete, advice.source) == (False, "")
    assert advice.wanted() == {"sst": {"codec": "zstd"}, "t": {}}
    advice.save(tmp_path / "again.json")
    assert AdviceFile.read(tmp_path / "again.json") == advice
    complete = AdviceFile.read({"schema": "hyperslab-advice", "source": "x", "arrays": {"t": {"format": "hdf5"}}})
    assert complete.wanted() == {"t": {"format": "hdf5", "chunks": "contiguous"}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "not JSON"),
        ("{}", "it has the form"),
        ('{"source": 3, "arrays": {}}', "source: 3 is not the name of a file"),
        ('{"source": "x", "arrays": {}, "array": {}}', "unknown key 'array'; did you mean 'arrays'"),
        ('{"source": "x", "arrays": {"/a": {"format": "hdf5", "chunk": [2]}}}', "did you mean 'chunks'"),
        ('{"source": "x", "arrays": {"/a": {"chunks": [2], "chunks": [3]}}}', "'chunks' is there twice"),
        ('{"source": "x", "version": 2, "arrays": {}}', "version 2"),
        ('{"source": "x", "version": true, "arrays": {}}', "version True"),
        ('{"source": "x", "arrays": {"/a": {"format": "hdf5", "chunks": [2, 2], "order": [0]}}}', "number of axes"),
        ('{"source": "x", "arrays": {"/a": {"format": "hdf5", "chunks": [2, 2], "order": [0, 0]}}}', "every axis once"),
        (f'{{{HEAD}, "arrays": {{"/a": {{"chunks": [2]}}}}}}', "'/a': format: this key is missing"),
        (f'{{{HEAD}, "arrays": {{"/a": {{"format": "hdf5", "chunks": [0]}}}}}}', "chunks is .* lengths from 1"),
        (f'{{{HEAD}, "arrays": {{"/a": {{"format": "hdf5", "chunks": 7}}}}}}', "chunks is 7, but it must be a list"),
        (f'{{{HEAD}, "arrays": {{"/a": {{"format": "hdf5", "chunks": [2], "shards": [2]}}}}}}', "hdf5 has no shards"),
        (f'{{{HEAD}, "arrays": {{"/a": {{"format": "hdf5", "chunks": null, "codec": "zstd"}}}}}}', "give chunks"),
        (f'{{{HEAD}, "arrays": {{"/a": {{"format": "zarr3", "chunks": [2], "shards": [3]}}}}}}', "multiple"),
    ],
)
def test_what_is_wrong_with_it_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(UsageError, match=said) as raised:
        AdviceFile.read(tmp_path / "bad.json")
    assert "bad.json" in str(raised.value)


def test_what_contradicts_itself_is_not_written() -> None:
    with pytest.raises(UsageError, match="format is 'hdf', but it must be one of hdf5"):
        AdvisedArray(format="hdf", chunks=[2])
    with pytest.raises(UsageError, match="array '/a': zarr2 has no shards"):
        AdviceFile("x", {"/a": AdvisedArray("zarr2", [2], [2])})


def test_a_file_that_does_not_exist_is_named() -> None:
    with pytest.raises(UsageError, match=r"advise FILE -o nowhere\.json"):
        AdviceFile.read("nowhere.json")


def test_the_old_names_still_work_and_say_the_new_ones(tmp_path: Path) -> None:
    from hyperslab.advise import advice

    with pytest.warns(DeprecationWarning, match=r"now hyperslab\.conversion\.advice\.AdviceFile"):
        assert advice.AdviceFile is AdviceFile
    with pytest.warns(DeprecationWarning, match=r"AdviceFile\.read"):
        load = advice.load_advice
    AdviceFile("x", {}).save(tmp_path / "advice.json")
    assert load(tmp_path / "advice.json") == AdviceFile("x", {})
