"""The classes of errors: codes, built-in bases, pickles, and that no built-in handler of ours swallows them."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

import hyperslab
from hyperslab import errors
from hyperslab.archive import fallback, followed
from hyperslab.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
BUILT_IN = {
    "UsageError": ValueError,
    "TooLargeForMemory": MemoryError,
    "MissingLibrary": ImportError,
    "RunError": RuntimeError,
    "NoSpace": OSError,
    "ReadError": OSError,
    "NotAllowed": PermissionError,
    "NoSuchRemoteFile": FileNotFoundError,
}


def classes(base: type[errors.HyperslabError] = errors.HyperslabError) -> Iterator[type[errors.HyperslabError]]:
    """Every error class, from the root down."""
    yield base
    for below in base.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from classes(below)


@pytest.mark.parametrize("kind", list(classes()), ids=lambda kind: kind.__name__)
def test_an_error_survives_pickles_and_copies(kind: type[errors.HyperslabError]) -> None:
    raised = kind("ocean.nc: \x1b[2J is damaged")
    for again in (pickle.loads(pickle.dumps(raised)), copy.copy(raised), copy.deepcopy(raised)):
        assert type(again) is kind
        assert again.args == raised.args
        assert str(again) == "ocean.nc: \\x1b[2J is damaged"
        assert again.code == kind.code
    assert type(kind.__new__(kind)) is kind  # as tblib unpickles errors once Dask is imported


def test_codes_are_unique_and_made_of_words() -> None:
    codes = [kind.code for kind in classes()]
    assert len(set(codes)) == len(codes)
    assert all("code" in vars(kind) and re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.code) for kind in classes())


def test_errors_derive_from_the_built_in_class_that_fits() -> None:
    for name, built_in in BUILT_IN.items():
        assert issubclass(getattr(errors, name), built_in)


def test_the_docstring_and_the_page_list_every_class_with_its_code() -> None:
    listed = re.findall(r"^[│├└─ ]*(\w+) +([a-z-]+)  ", errors.__doc__ or "", re.MULTILINE)
    told = re.findall(r"^\| `([a-z-]+)` \| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    expected = {(kind.__name__, kind.code) for kind in classes()}
    assert set(listed) == expected
    assert {(name, code) for code, name in told} == expected


def test_the_command_line_ends_its_message_with_the_code(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from hyperslab.cli import main

    damaged = tmp_path / "damaged.h5"
    damaged.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["hyperslab", "info", str(damaged)])
        with pytest.raises(SystemExit) as stopped:
            main()
    assert stopped.value.code == 1
    assert capfd.readouterr().err.rstrip().endswith("[damaged-file]")


class TestOurErrorsPass:
    """Handlers of built-in exceptions must not change our errors, which are such exceptions too."""

    def test_h5py_reading_a_file_that_leads_elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise errors.NotAllowed("no")

        monkeypatch.setattr(fallback, "Followed", refuse)
        with pytest.raises(errors.NotAllowed):
            fallback.dtype_of("x.h5", "x", None)  # type: ignore[arg-type]
        with pytest.raises(errors.NotAllowed):
            fallback.read("x.h5", "x", None, None)  # type: ignore[arg-type]

    def test_opening_on_the_command_line(self, tmp_path: Path) -> None:
        damaged = tmp_path / "damaged.h5"
        damaged.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
        for command in (["info", str(damaged)], ["read", str(damaged), "x"], ["versions", "log", str(damaged)]):
            assert isinstance(CliRunner().invoke(app, command).exception, errors.DamagedFile)

    def test_a_selection_that_is_too_large(self, tmp_path: Path) -> None:
        path = tmp_path / "large.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", (1 << 50,), "f8", chunks=(1 << 20,))
        with hyperslab.open(path) as root, pytest.raises(errors.TooLargeForMemory, match="bytes of memory"):
            root["x"][...]
        told = CliRunner().invoke(app, ["read", str(path), "x", "--plan"]).exception
        assert isinstance(told, errors.UsageError)
        assert "select less" in str(told)

    def test_a_file_of_the_kernel(self) -> None:
        with pytest.raises(errors.ReadError, match="it is a file of the kernel, not a regular file"):
            followed.check_regular("/proc/self/status")

    def test_a_damaged_chunk_on_the_command_line(self, tmp_path: Path) -> None:
        path = tmp_path / "damaged.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=np.arange(100), chunks=(100,), fletcher32=True)
            at = file["x"].id.get_chunk_info(0).byte_offset
        with open(path, "r+b") as stream:
            stream.seek(at)
            stream.write(b"\x17\x2a\x03" * 3)
        assert isinstance(CliRunner().invoke(app, ["read", str(path), "x"]).exception, errors.DamagedFile)
