"""The file by which `advise` tells `convert` what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperslab.advise.advice import AdviceFile, AdvisedArray, load_advice
from hyperslab.errors import UsageError


def test_it_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    array = AdvisedArray(format="zarr3", chunks=[1, 2], shards=[4, 4], codec="zstd", level=3, order=[1, 0])
    advice = AdviceFile(source="ocean.nc", arrays={"/sst": array})
    advice.save(tmp_path / "advice.json")
    assert load_advice(tmp_path / "advice.json") == advice


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "not JSON"),
        ("{}", "it has the form"),
        ('{"arrays": {}}', "source: Field required"),
        ('{"source": "x", "arrays": {}, "array": {}}', "unknown key 'array'; did you mean 'arrays'"),
        ('{"source": "x", "arrays": {"/a": {"format": "hdf5", "chunk": [2]}}}', "did you mean 'chunks'"),
        ('{"source": "x", "arrays": {"/a": {"chunks": [2], "chunks": [3]}}}', "'chunks' is there twice"),
        ('{"source": "x", "version": 2, "arrays": {}}', "version 2"),
        ('{"source": "x", "arrays": {"/a": {"format": "hdf5", "chunks": [2], "shards": [2]}}}', "hdf5 has no shards"),
        ('{"source": "x", "arrays": {"/a": {"format": "hdf5", "chunks": null, "codec": "zstd"}}}', "give chunks"),
        ('{"source": "x", "arrays": {"/a": {"format": "zarr3", "chunks": [2], "shards": [3]}}}', "multiple"),
        ('{"source": "x", "arrays": {"/a": {"format": "hdf5", "chunks": [2, 2], "order": [0]}}}', "number of axes"),
        ('{"source": "x", "arrays": {"/a": {"format": "hdf5", "chunks": [2, 2], "order": [0, 0]}}}', "every axis once"),
    ],
)
def test_what_is_wrong_with_it_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(UsageError, match=said) as raised:
        load_advice(tmp_path / "bad.json")
    assert "bad.json" in str(raised.value)


def test_a_file_that_does_not_exist_is_named() -> None:
    with pytest.raises(UsageError, match=r"advise FILE -o nowhere\.json"):
        load_advice("nowhere.json")
