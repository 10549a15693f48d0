"""The classes of errors: codes, built-in bases, pickles, and that no built-in handler of ours swallows them."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

import hyperslab
from hyperslab import errors
from hyperslab.archive.tree import fallback, followed
from hyperslab.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
BUILT_IN = {
    "UsageError": ValueError,
    "TooLargeForMemory": MemoryError,
    "MissingLibrary": ImportError,
    "NoSuchFile": FileNotFoundError,
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


def damaged_array(folder: Path) -> Path:
    """A file with a good array, and one whose list of chunks is damaged."""
    with h5py.File(folder / "a.h5", "w", libver="earliest") as file:
        file["good"] = np.arange(3)
        file.create_dataset("bad", data=np.arange(100.0), chunks=(10,))
    content = bytearray((folder / "a.h5").read_bytes())
    at = content.rfind(b"TREE\x01")  # the index of chunks
    content[at : at + 4] = b"EERT"
    (folder / "a.h5").write_bytes(content)
    return folder / "a.h5"


def unsupported_array(folder: Path) -> Path:
    """A file with a good array, and one with a filter that nobody has."""
    with h5py.File(folder / "a.h5", "w") as file:
        file["good"] = np.arange(3)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((10,))
        plist.set_filter(65_000, h5py.h5z.FLAG_OPTIONAL, ())
        array = h5py.h5d.create(file.id, b"bad", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((10,)), plist)
        array.write_direct_chunk((0,), bytes(80), 0)
    return folder / "a.h5"


def leads_elsewhere(folder: Path) -> Path:
    """A file with a good array, and one whose elements are in a file outside its folder."""
    folder.with_name("raw.bin").write_bytes(bytes(80))
    with h5py.File(folder / "a.h5", "w") as file:
        file["good"] = np.arange(3)
        file.create_dataset("bad", (10,), "f8", external=[(str(folder.with_name("raw.bin")), 0, 80)])
    return folder / "a.h5"


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (damaged_array, errors.DamagedFile),
        (unsupported_array, errors.Unsupported),
        (leads_elsewhere, errors.NotAllowed),
    ],
)
def test_one_meaning_has_one_class_whoever_meets_it(
    tmp_path: Path, make: Callable[[Path], Path], kind: type[errors.HyperslabError]
) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    path = make(folder)

    def opened() -> hyperslab.Group:
        return hyperslab.open(path, allowed=())

    asked = {
        "read": lambda: opened()["bad"][...],
        "index": lambda: hyperslab.index(opened()).save(folder / "refs.json"),
        "convert to zarr": lambda: hyperslab.convert(opened(), folder / "b.zarr"),
        "convert to netcdf4": lambda: hyperslab.convert(opened(), folder / "b.nc", codec="zstd:1"),
    }
    met = {}
    for name, ask in asked.items():
        with pytest.raises(errors.HyperslabError) as raised:
            ask()
        met[name] = type(raised.value)
    assert met == dict.fromkeys(asked, kind)
    assert [one.name for one in folder.iterdir()] == ["a.h5"]


def test_what_does_not_fit_in_memory_has_one_class_in_python_and_in_the_command(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hyperslab.cli import main

    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (1 << 46,), "u1", chunks=(1 << 20,))
    with pytest.raises(errors.TooLargeForMemory), hyperslab.open(path) as root:
        root["x"][...]
    words = ["hyperslab", "read", str(path), "x", "--decode", "-o", str(tmp_path / "x.npy")]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert capfd.readouterr().err.rstrip().endswith("[too-large-for-memory]")


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

    def test_a_local_file_that_is_not_there(self, tmp_path: Path) -> None:
        missing = str(tmp_path / "missing.h5")
        for opened in (
            lambda: hyperslab.open(missing),
            lambda: hyperslab.index(missing),
            lambda: hyperslab.convert(missing, tmp_path / "new.h5"),
            lambda: hyperslab.VersionedFile(missing, "r+"),
            lambda: hyperslab.open(str(tmp_path / "missing*.h5"), concat=0),
        ):
            with pytest.raises(errors.NoSuchFile, match=r"missing\*?\.h5") as raised:
                opened()
            assert isinstance(raised.value, FileNotFoundError)
            assert raised.value.filename is not None
        commands = [["info", missing], ["index", missing, "-o", "x.hs"], ["versions", "log", missing]]
        commands += [["advise", named, "--like", "maps"] for named in (missing, f"{missing}:x")]
        for command in commands:
            told = CliRunner().invoke(app, command).exception
            assert isinstance(told, errors.NoSuchFile)
            assert f"there is no file {missing}" in str(told)

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
