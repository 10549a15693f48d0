"""Files that lead elsewhere: what is followed, what is refused, and the messages. docs/security.md has the rule."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

import hyperslab as hs
from command_line import run_hyperslab
from hyperslab.archive.far.url_prefix import is_below
from hyperslab.cli import app
from hyperslab.errors import HyperslabError, NotAllowed, ReadError, UsageError
from hyperslab.versions import VersionedFile

SECRET = b"a secret of this machine"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere" / "secret.bin"
    path.parent.mkdir()
    path.write_bytes(SECRET)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


def kerchunk(path: Path, name: str, nbytes: int = len(SECRET)) -> Path:
    array = {"zarr_format": 2, "shape": [nbytes], "chunks": [nbytes], "dtype": "|u1", "compressor": None}
    array |= {"filters": None, "fill_value": None, "order": "C"}
    refs = {".zgroup": '{"zarr_format": 2}', "x/.zarray": json.dumps(array), "x/0": [name, 0, nbytes]}
    path.write_text(json.dumps({"version": 1, "refs": refs}))
    return path


def external(path: Path, raw: Path | str) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (len(SECRET),), "u1", external=[(str(raw), 0, len(SECRET))])
        file["good"] = np.arange(3)
    return path


def virtual(path: Path, source: Path | str, dtype: Any = "u1", length: int = len(SECRET)) -> Path:
    layout = h5py.VirtualLayout((length,), dtype)
    layout[:] = h5py.VirtualSource(str(source), "x", (length,), dtype)
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("x", layout)
    return path


def zarr_folder(path: Path, chunk: Path) -> Path:
    array = {"zarr_format": 2, "shape": [len(SECRET)], "chunks": [len(SECRET)], "dtype": "|u1", "compressor": None}
    array |= {"filters": None, "fill_value": None, "order": "C"}
    (path / "x").mkdir(parents=True)
    (path / ".zgroup").write_text('{"zarr_format": 2}')
    (path / "x" / ".zarray").write_text(json.dumps(array))
    (path / "x" / "0").symlink_to(chunk)
    return path


def leading(kind: str, home: Path, secret: Path) -> Path:
    """A document of this kind, whose array "x" is the secret."""
    if kind == "kerchunk":
        return kerchunk(home / "a.json", str(secret))
    if kind == "raw":
        return external(home / "a.h5", secret)
    if kind == "zarr":
        return zarr_folder(home / "a.zarr", secret)
    source = secret.with_name("source.h5")
    with h5py.File(source, "w") as file:
        file["x"] = np.frombuffer(SECRET, "u1")
    if kind == "virtual":
        return virtual(home / "a.h5", source)
    with h5py.File(home / "a.h5", "w") as file:
        file["x"] = h5py.ExternalLink(str(source), "/x")
        file["good"] = np.arange(3)
    return home / "a.h5"


KINDS = ("kerchunk", "raw", "zarr", "virtual", "link")


@pytest.mark.parametrize("kind", KINDS)
def test_what_lies_here_leads_where_it_says_unless_narrowed(kind: str, home: Path, secret: Path) -> None:
    path = leading(kind, home, secret)
    assert bytes(hs.open(path)["x"][...]) == SECRET
    assert bytes(hs.open(path, allowed=[secret.parent])["x"][...]) == SECRET
    for allowed in ((), [home], [secret.parent / "se"], [f"{secret.parent}/../home"], ["https://data.example.org"]):
        with pytest.raises(NotAllowed, match=r"leads to .*elsewhere.*is not allowed.*allowed=\[") as raised:
            hs.open(path, allowed=allowed)["x"][...]
        assert "a.json" in str(raised.value) or "a.h5" in str(raised.value) or "a.zarr" in str(raised.value)


@pytest.mark.parametrize("kind", ["raw", "link"])
def test_what_else_is_there_still_opens(kind: str, home: Path, secret: Path) -> None:
    found = hs.open(leading(kind, home, secret), allowed=())
    assert list(found["good"][...]) == [0, 1, 2]
    assert "good" in found.arrays
    assert [array.name for array in found.walk() if array.name == "/good"]


def test_own_references_lead_no_further(home: Path, secret: Path) -> None:
    hs.index(external(home / "a.h5", secret)).save(home / "refs.hs")
    assert bytes(hs.open(home / "refs.hs")["x"][...]) == SECRET
    with pytest.raises(NotAllowed):
        hs.open(home / "refs.hs", allowed=())["x"][...]
    with pytest.raises(NotAllowed):
        hs.open(home / "refs.hs", allowed=[home])["x"][...]
    assert list(hs.open(home / "refs.hs", allowed=[home])["good"][...]) == [0, 1, 2]


def test_tables_in_parquet_lead_no_further(home: Path, secret: Path) -> None:
    pytest.importorskip("pyarrow")
    hs.index(kerchunk(home / "a.json", str(secret))).save(home / "refs.parquet", inline_threshold=0)
    assert bytes(hs.open(home / "refs.parquet")["x"][...]) == SECRET
    with pytest.raises(NotAllowed):
        hs.open(home / "refs.parquet", allowed=())["x"][...]


def shown(place: Path) -> str:
    """Everything that is visible of a document that may lead nowhere."""
    try:
        found = hs.open(place, allowed=())
        names = [group.name for group in found.walk_groups()]
        return f"{dict(found.attrs.readable())} {list(found)} {names} {[found[name] for name in found]}"
    except HyperslabError as error:
        return str(error)


def test_metadata_are_no_way_out(home: Path, secret: Path) -> None:
    path = home / "a.json"
    refs = {".zgroup": '{"zarr_format": 2}', ".zattrs": [str(secret)], "x/.zarray": [str(secret)]}
    path.write_text(json.dumps({"version": 1, "refs": refs}))
    (home / "b.zarr").mkdir()
    (home / "b.zarr" / ".zgroup").write_text('{"zarr_format": 2}')
    (home / "b.zarr" / ".zattrs").symlink_to(secret)
    (home / "b.zarr" / "inner").symlink_to(secret.parent)
    secret.with_name(".zgroup").write_text('{"zarr_format": 2}')
    secret.with_name(".zattrs").write_text('{"secret": 1}')
    for place in (path, home / "b.zarr"):
        said = shown(place)
        assert "secret of" not in said
        assert "'secret'" not in said
    assert hs.open(home / "b.zarr")["inner"].attrs["secret"] == 1


def test_links_of_links_are_judged_by_the_first_file(home: Path, secret: Path) -> None:
    (home / "sub").mkdir()
    external(home / "sub" / "b.h5", secret)
    with h5py.File(home / "a.h5", "w") as file:
        file["b"] = h5py.ExternalLink("sub/b.h5", "/")
    assert bytes(hs.open(home / "a.h5")["b/x"][...]) == SECRET
    found = hs.open(home / "a.h5", allowed=[home])
    assert list(found["b/good"][...]) == [0, 1, 2]
    with pytest.raises(NotAllowed):
        found["b/x"][...]
    with pytest.raises(NotAllowed):
        hs.open(home / "a.h5", allowed=())["b/good"]


def test_links_of_the_system_are_resolved(home: Path, secret: Path) -> None:
    (home / "innocent").symlink_to(secret.parent)
    found = hs.open(kerchunk(home / "a.json", "innocent/secret.bin"), allowed=[home])
    with pytest.raises(NotAllowed):
        found["x"][...]
    assert bytes(hs.open(home / "a.json", allowed=[home / "innocent"])["x"][...]) == SECRET


def test_pickles_carry_what_is_allowed(home: Path, secret: Path) -> None:
    for kind in ("kerchunk", "raw"):
        path = leading(kind, home, secret)
        with pytest.raises(NotAllowed):
            pickle.loads(pickle.dumps(hs.open(path, allowed=())["x"]))[...]
        assert bytes(pickle.loads(pickle.dumps(hs.open(path, allowed=[secret.parent])["x"]))[...]) == SECRET


def test_xarray_and_its_tasks_keep_what_is_allowed(home: Path, secret: Path) -> None:
    xarray, dask = pytest.importorskip("xarray"), pytest.importorskip("dask")
    path = external(home / "a.h5", secret)
    for chunks in (None, {}):
        found = xarray.open_dataset(path, engine="hyperslab", allowed=(), chunks=chunks)
        with pytest.raises(NotAllowed), dask.config.set(scheduler="processes"):
            found["x"].load()


def test_collections_keep_what_is_allowed(home: Path, secret: Path) -> None:
    paths = [external(home / f"{name}.h5", secret) for name in "ab"]
    assert bytes(hs.open(paths, concat=0, allowed=[secret.parent])["x"][...]) == 2 * SECRET
    with pytest.raises(NotAllowed):
        hs.open(paths, concat=0, allowed=())["x"][...]
    with pytest.raises(NotAllowed):
        pickle.loads(pickle.dumps(hs.open(paths, concat=0, allowed=())["x"]))[...]


@pytest.fixture
def versions(home: Path, secret: Path) -> Path:
    """A versioned file; one version has a link and a virtual array that lead elsewhere."""
    path = home / "v.h5"
    with VersionedFile(path, "w") as file:
        with file.stage_version("one") as version:
            version.create_dataset("a/x", data=np.arange(4))
        with file.stage_version("two") as version:
            version["a/x"][0] = 9
    source = external(secret.with_name("b.h5"), secret)
    with h5py.File(path, "r+") as file:
        version = file["_version_data/versions/one"]
        version["out"] = h5py.ExternalLink(str(source), "/x")
        layout = h5py.VirtualLayout((3,), "i8")
        layout[:] = h5py.VirtualSource(str(source), "good", (3,))
        version.create_virtual_dataset("virtual", layout)
    return path


def test_versions_keep_what_is_allowed(versions: Path, secret: Path) -> None:
    for opened in (
        lambda **allowed: hs.open(versions, version="one", **allowed),
        lambda **allowed: VersionedFile(versions, **allowed)["one"],
        lambda **allowed: VersionedFile(h5py.File(versions), **allowed)["one"],
    ):
        for said in ({}, {"allowed": [secret.parent]}):
            assert bytes(opened(**said)["out"][...]) == SECRET
            assert list(opened(**said)["virtual"][...]) == [0, 1, 2]
        narrow = opened(allowed=())
        for name in ("out", "virtual"):
            with pytest.raises(NotAllowed):
                narrow[name][...]
        assert list(narrow["a/x"][...]) == [0, 1, 2, 3]
    with (
        VersionedFile(versions, "r+", allowed=()) as file,
        pytest.raises(NotAllowed),
        file.stage_version("three", "one"),
    ):
        pass


def test_what_is_asked_of_versions_stays_in_their_file(versions: Path, secret: Path, home: Path) -> None:
    with VersionedFile(versions, allowed=[secret.parent]) as file:
        found = file.diff("one", "two")
        assert found["a/x"].is_changed
        assert {"out", "virtual"}.isdisjoint(found.arrays)
        assert [entry.version.name for entry in file.log()] == ["one", "two"]
        assert [size.name for size in file.stats().versions] == ["one", "two"]
        assert not file.verify().is_whole
        for ending in (".h5", ".zarr", ".json"):
            with pytest.raises(HyperslabError):
                file.export("one", home / f"copy{ending}")


def test_the_command_line_takes_places(home: Path, secret: Path) -> None:
    path = external(home / "a.h5", secret)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_hyperslab(*arguments)

    assert run("read", str(path), "x", "--json", "--allowed", str(secret.parent)).returncode == 0
    refused = run("read", str(path), "x", "--json", "--allowed", "")
    assert refused.returncode == 1
    assert "not followed" in refused.stderr
    refused = run("index", str(path), "-o", str(home / "refs.json"), "--allowed", "")
    assert refused.returncode != 0
    assert not (home / "refs.json").exists()


def test_places_are_a_list(home: Path, secret: Path) -> None:
    with pytest.raises(UsageError, match="give a list"):
        hs.open(external(home / "a.h5", secret), allowed="/data")


@pytest.mark.parametrize("kind", KINDS)
def test_references_hold_no_copy_of_what_a_file_leads_to(kind: str, home: Path, secret: Path) -> None:
    path = leading(kind, home, secret)
    hs.index(path).save(home / "refs.json")
    text = (home / "refs.json").read_text()
    assert "secret of" not in text
    assert "YSBzZWNyZXQ" not in text  # the same as base64
    assert bytes(hs.open(home / "refs.json")["x"][...]) == SECRET
    hs.index(path, allowed=[secret.parent]).save(home / "again.json")
    assert "YSBzZWNyZXQ" in (home / "again.json").read_text()
    if kind != "link":  # a refused link is left out like a broken one
        with pytest.raises(HyperslabError):
            hs.index(path, allowed=()).save(home / "never.json")
        assert not (home / "never.json").exists()


def test_pipes_and_files_of_the_kernel_are_no_sources(home: Path) -> None:
    os.mkfifo(home / "pipe")
    os.mkfifo(home / "pipe.zip")
    kernel = ("/proc/self/environ", "/proc/kcore", "/sys/kernel/uevent_seqnum")  # of 0, of very many, and of 4096 bytes
    for name in ("pipe", "pipe.zip", *kernel, "/dev/zero"):
        if name == "/dev/zero" or (home / name).exists():
            for place in (kerchunk(home / "a.json", name, 8), external(home / "a.h5", home / name)):
                with pytest.raises(ReadError, match="not a regular file"):
                    hs.open(place)["x"][...]
            with pytest.raises(ReadError, match="not a regular file"):
                hs.open(home / name)


def test_documents_that_are_pipes_are_refused(home: Path) -> None:
    """Those of Zarr, and tables of references in Parquet."""
    (home / "a.zarr").mkdir()
    os.mkfifo(home / "a.zarr" / "zarr.json")
    with pytest.raises(HyperslabError):
        hs.open(home / "a.zarr")
    (home / "eight.bin").write_bytes(bytes(8))
    kerchunk(home / "a.json", "eight.bin", 8)
    hs.index(home / "a.json").save(home / "a.parquet")
    table = next((home / "a.parquet").glob("x/refs.*.parq"))
    table.unlink()
    os.mkfifo(table)
    with pytest.raises(ReadError, match="not a regular file"):
        hs.open(home / "a.parquet")["x"][...]


@pytest.mark.parametrize("name", ["/proc/self/environ", "pipe"])
def test_h5py_is_not_asked_for_what_is_no_file(home: Path, name: str) -> None:
    raw = home / name
    if name == "pipe":
        os.mkfifo(raw)
    text = h5py.string_dtype()
    with h5py.File(home / "source.h5", "w") as file:
        file.create_dataset("raw", (8,), "u1", external=[(str(raw), 0, 8)])
        layout = h5py.VirtualLayout((3,), text)
        file["x"] = np.array(["a", "b", "c"], text)
        # We do not read an element that spans two files, but h5py would
        file.create_dataset("halves", (2,), "<u8", external=[(str(raw), 0, 4), (str(raw), 4, 12)])
    layout[:] = h5py.VirtualSource(str(home / "source.h5"), "x", (3,), text)
    inner = h5py.VirtualLayout((2,), "<u8")
    inner[:] = h5py.VirtualSource(str(home / "source.h5"), "halves", (2,), "<u8")
    with h5py.File(home / "a.h5", "w") as file:
        file.create_virtual_dataset("text", layout)
        file.create_virtual_dataset("x", inner)
    found = hs.open(home / "a.h5")
    assert found["text"].via == "h5py"
    assert list(found["text"][...]) == [b"a", b"b", b"c"] or list(found["text"][...]) == ["a", "b", "c"]
    for array in (found["x"], hs.open(home / "source.h5")["halves"]):
        with pytest.raises(ReadError, match="not a regular file"):
            array[...]
    narrow = hs.open(home / "a.h5", allowed=())
    for array in ("text", "x"):
        with pytest.raises(NotAllowed):
            narrow[array][...]
    assert len(hs.open(home / "a.h5", allowed=[home])["text"][...]) == 3


def test_prefixes_of_urls_are_compared_by_parts() -> None:
    prefix = "https://data.example.org/a"
    for inside in ("https://data.example.org/a", "https://data.example.org/a/b.nc", "HTTPS://DATA.example.org:443/a/b?q=1",
                   "https://user:pass@data.example.org/a/b", "https://data.example.org/%61/b"):  # fmt: skip
        assert is_below(inside, prefix), inside
    for outside in (
        "https://data.example.org/ab", "https://data.example.org/", "http://data.example.org/a/b",
        "https://data.example.org:8443/a/b", "https://data.example.org.evil.com/a/b",
        "https://data.example.org@evil.com/a/b", "https://evil.com\\@data.example.org/a/b",
        "https://evil.com#@data.example.org/a/b", "https://evil.com?@data.example.org/a/b",
        "https://data.example.org/a/../b", "https://data.example.org/a/%2e%2e/b", "https://data.example.org/a/..%2fb",
        "https://data.example.org/a/%252e%252e/b", "https://data.example.org/a/..\\b", "https://data.example.org/a/.%2e/b",
        "https://data.example.org/a/x%5c..%5c..%5cb", "https://data.example.org\n.evil.com/a", "https:///a/b",
        "https://data.example.org%2eevil.com/a/b", "//data.example.org/a/b", "file:///a/b", "s3://data.example.org/a/b",
        "https://data.example.org:99999/a/b", "https://[/a", "https://data.example.org/a/c/../b",
        "https://data.example.org/a\tb", "https://data.example.org\\a", "https://data.example.org/a/c%2f..%2fb",
    ):  # fmt: skip
        assert not is_below(outside, prefix), outside
    assert is_below("s3a://bucket/a/b", "s3://bucket/a")
    assert is_below("s3://bucket/a", "s3://")
    assert not is_below("s3://bucket2/a", "s3://bucket")
    assert not is_below("s3://bucket/a/../b", "s3://bucket/a")
    assert not is_below("https://x/a", "https://")


@pytest.mark.parametrize("kind", ["kerchunk", "raw", "zarr", "virtual"])
@pytest.mark.parametrize("command", ["index", "convert"])
def test_every_command_refuses_by_one_class(kind: str, command: str, home: Path, secret: Path) -> None:
    """Another status or code for the same refusal would tell programs that something else is wrong."""
    target = ["-o", str(home / "b.json")] if command == "index" else [str(home / "b.zarr")]
    words = [command, str(leading(kind, home, secret)), *target, "--allowed", ""]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, NotAllowed), done.exception
    assert "which is not allowed, so it is not followed" in str(done.exception)


@pytest.mark.parametrize("given", ["", "file://", "a\0b", "a\udcff"])
def test_names_that_are_none_are_not_allowed_by_chance(given: str, home: Path, secret: Path) -> None:
    path = leading("raw", home, secret)
    for allowed in ([given], [secret.parent, given]):
        with pytest.raises(UsageError, match="allowed="):
            hs.open(path, allowed=allowed)


def test_a_name_that_is_not_utf_8_is_said(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/a\xff.h5"
    with open(path, "wb") as file:
        file.write(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(UsageError, match="a name must be text in UTF-8"):
        hs.open(os.fsdecode(path))


def test_an_index_names_the_links_that_it_leaves_out(home: Path, secret: Path) -> None:
    source = external(secret.with_name("b.h5"), secret)
    with h5py.File(home / "a.h5", "w") as file:
        file["good"] = np.arange(3)
        file["inner/out"] = h5py.ExternalLink(str(source), "/good")
        file["inner/gone"] = h5py.SoftLink("/nothing")
    with hs.open(home / "a.h5", allowed=()) as root:
        saved = hs.index(root).save(home / "refs.json")
    assert set(saved.left_out) == {"inner/out", "inner/gone"}
    assert "not followed" in saved.left_out["inner/out"]
    with hs.open(home / "a.h5", allowed=[secret.parent]) as root:
        assert set(hs.index(root).save(home / "refs.json").left_out) == {"inner/gone"}
