"""Remote references, and references to remote files: read through the same stores, and no secret is kept."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import servers

import hyperslab as hs
from hyperslab.errors import FileChanged, NoSuchRemoteFile, NotAllowed, ReadError, Refused, RemoteError, UsageError

LOGIN = {"username": servers.USER, "password": servers.PASSWORD}
SUFFIXES = ("hs", "json")


def expected(root: Path) -> np.ndarray:
    with h5py.File(root / "ocean.h5") as file:
        return file["deflated"][...]


def counted(before: dict[str, Any]) -> int:
    return int(hs.stats()["request_count"] - before["request_count"])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_of_references_are_far_away(server: servers.Nginx, root: Path, tmp_path: Path, suffix: str) -> None:
    refs = tmp_path / f"refs.{suffix}"
    hs.index(f"{server.url}/ocean.h5").save(refs, skip_unsupported=True)
    before = hs.stats()
    found = hs.open(refs)
    assert counted(before) == 0
    np.testing.assert_array_equal(found["deflated"][...], expected(root))
    np.testing.assert_array_equal(found["plain"][3:50, ::7, 3], expected(root)[3:50, ::7, 3])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found["whole"]))[5], expected(root)[5])
    assert found["group/deep"][1, 1] == 5
    if suffix == "hs":
        assert list(found["names"][...]) == ["a", "bc", "ä" * 300]
        found.file.check_sources()


def test_no_request_is_made_but_for_chunks(server: servers.Nginx, tmp_path: Path) -> None:
    hs.index(f"{server.url}/ocean.h5").save(tmp_path / "refs.hs")
    before = hs.stats()
    assert hs.open(tmp_path / "refs.hs")["deflated"][0, 0, 0] is not None
    assert counted(before) == 1


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_references_far_away(server: servers.Nginx, root: Path, tmp_path: Path, suffix: str) -> None:
    folder = root / f"refs-{suffix}"
    folder.mkdir()
    (folder / "ocean.h5").write_bytes((root / "ocean.h5").read_bytes())
    hs.index(folder / "ocean.h5").save(folder / f"beside.{suffix}", skip_unsupported=True)
    hs.index(f"{server.url}/ocean.h5").save(folder / f"far.{suffix}", skip_unsupported=True)
    if suffix == "json":  # published references name files by the URLs that readers use
        text = (folder / "beside.json").read_text().replace(f"{folder}/", "")
        (folder / "beside.json").write_text(text)
    for name in ("far", "beside"):
        above = [server.url] if name == "far" else None
        found = hs.open(f"{server.url}/refs-{suffix}/{name}.{suffix}", allowed=above)
        np.testing.assert_array_equal(found["deflated"][3:40], expected(root)[3:40])
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(found["plain"]))[9], expected(root)[9])
        hs.index(found).save(tmp_path / "again.hs")
        np.testing.assert_array_equal(hs.open(tmp_path / "again.hs")["plain"][9], expected(root)[9])


def test_credentials_reach_the_files_and_nothing_else(server: servers.Nginx, root: Path, tmp_path: Path) -> None:
    url = f"{server.url}/private/ocean.h5"
    for suffix in SUFFIXES:
        refs = tmp_path / f"refs.{suffix}"
        secret = f"http://{servers.USER}:{servers.PASSWORD.replace(' ', '%20')}@127.0.0.1:{server.port}"
        hs.index(f"{secret}/private/ocean.h5").save(refs, skip_unsupported=True)
        hs.index(url, storage_options=LOGIN).save(refs, skip_unsupported=True)
        assert b"sesame" not in refs.read_bytes()
        array = hs.open(refs, storage_options=LOGIN)["deflated"]
        assert array[1, 1, 1] == expected(root)[1, 1, 1]
        assert b"sesame" not in pickle.dumps(array)
        with pytest.raises(UsageError, match="opened with username, password in another process"):
            pickle.loads(pickle.dumps(array))
        with pytest.raises(RemoteError, match="HTTP 401") as raised:
            hs.open(refs, storage_options={"username": servers.USER, "password": "hunter2"})["deflated"][0]
        assert "hunter2" not in str(raised.value)
        hs.credentials(f"{server.url}/private/", **LOGIN)
        try:
            assert hs.open(refs)["deflated"][1, 1, 1] == expected(root)[1, 1, 1]
        finally:
            hs.credentials(f"{server.url}/private/")


def document(refs: Path, name: str, offset: int = 0) -> Path:
    array = {"zarr_format": 2, "shape": [8], "chunks": [8], "dtype": "|u1", "compressor": None, "filters": None}
    array |= {"fill_value": None, "order": "C"}
    keys = {".zgroup": '{"zarr_format": 2}', "x/.zarray": json.dumps(array), "x/0": [name, offset, 8]}
    refs.write_text(json.dumps({"version": 1, "refs": keys}))
    return refs


def test_what_is_meant_for_one_server_is_sent_to_no_other(
    server: servers.Nginx, proxy: servers.Proxy, root: Path, tmp_path: Path
) -> None:
    refs = document(root / "elsewhere.json", f"{proxy.url}/ocean.h5")
    options = {"headers": {"Authorization": "Bearer hunter2"}}
    far = hs.open(f"{server.url}/elsewhere.json", storage_options=options, allowed=[proxy.url])
    assert bytes(far["x"][...]) == (root / "ocean.h5").read_bytes()[:8]
    assert proxy.seen
    assert not any("Authorization" in headers for headers in proxy.seen)
    text = refs.read_text().replace('"x/0"', f'"y/0": ["{server.url}/ocean.h5", 0, 8], "x/0"')
    (tmp_path / "two.json").write_text(text)
    with pytest.raises(UsageError, match=r"2 web servers.*credentials") as raised:
        hs.open(tmp_path / "two.json", storage_options={"token": "hunter2"})
    assert "hunter2" not in str(raised.value)
    hs.open(tmp_path / "two.json", storage_options={"timeout": 5.0})


def test_far_references_lead_to_no_local_file(server: servers.Nginx, root: Path) -> None:
    for name in (str(root / "ocean.h5"), "../../etc/passwd", "sub/../../x"):
        document(root / "hostile.json", name)
        with pytest.raises(NotAllowed, match="not followed"):
            hs.open(f"{server.url}/hostile.json")["x"][...]


def test_queries_are_never_kept(server: servers.Nginx, root: Path, tmp_path: Path) -> None:
    asked = hs.index(f"{server.url}/ocean.h5?signature=hunter2")
    with pytest.raises(Refused, match="query") as raised:
        asked.save(tmp_path / "refs.json")
    assert "hunter2" not in str(raised.value)
    asked.save(tmp_path / "refs.hs")
    assert b"hunter2" not in (tmp_path / "refs.hs").read_bytes()
    found = hs.open(tmp_path / "refs.hs", storage_options={"query": "signature=hunter2"})
    assert found["group/deep"][1, 1] == 5
    refs = document(tmp_path / "foreign.json", f"{server.url}/ocean.h5?signature=hunter2")
    assert bytes(hs.open(refs)["x"][...]) == (root / "ocean.h5").read_bytes()[:8]
    for name in ("again.hs", "again.json"):
        with pytest.raises(Refused, match="query") as raised:
            hs.index(refs).save(tmp_path / name, inline_threshold=0)
        assert "hunter2" not in str(raised.value)
    missing = document(tmp_path / "missing.json", f"{server.url}/none.h5?signature=hunter2")
    with pytest.raises(NoSuchRemoteFile) as missed:
        hs.open(missing)["x"][...]
    assert "hunter2" not in str(missed.value)


def test_stale_references_are_noticed(server: servers.Nginx, root: Path, tmp_path: Path) -> None:
    far = root / "changing.h5"
    with h5py.File(far, "w") as file:
        file["x"] = np.arange(1000)
    hs.index(f"{server.url}/changing.h5").save(tmp_path / "refs.hs")
    hs.index(f"{server.url}/changing.h5").save(tmp_path / "refs.json", inline_threshold=0)
    before = hs.open(tmp_path / "refs.json")
    assert before["x"][5] == 5
    with h5py.File(far, "w") as file:
        file["x"] = np.arange(1000)[::-1].copy()  # of the same length
    os.utime(far, (1_000_000_000, 1_000_000_000))  # nginx makes ETags from size and seconds
    for look in (lambda root: root["x"][...], lambda root: root.file.check_sources()):
        with pytest.raises(FileChanged, match=r"changing\.h5 changed since .*refs\.hs was written.*index it again"):
            look(hs.open(tmp_path / "refs.hs"))
    with pytest.raises(FileChanged, match=r"changing\.h5"):
        before["x"][6]  # kerchunk's references lack this; the first answer tells it
    far.write_bytes(far.read_bytes()[:100])
    with pytest.raises(ReadError, match=r"past its end|past the end|stale"):
        hs.open(tmp_path / "refs.json")["x"][...]


def test_a_range_that_the_file_ends_in_is_damage(server: servers.Nginx, root: Path, tmp_path: Path) -> None:
    size = (root / "ocean.h5").stat().st_size
    for offset in (size - 4, size, size + 100):
        refs = document(tmp_path / "refs.json", f"{server.url}/ocean.h5", offset)
        with pytest.raises(ReadError, match=r"past|ends at"):
            hs.open(refs)["x"][...]


def test_several_far_files(server: servers.Nginx, root: Path, tmp_path: Path) -> None:
    urls = [f"{server.url}/{number}.h5" for number in range(7)]
    for number in range(7):
        with h5py.File(root / f"{number}.h5", "w") as file:
            file["x"] = np.full(100, number)
    hs.index(urls).save(tmp_path / "refs.hs")
    found = hs.open(tmp_path / "refs.hs")
    assert [int(found[f"{number}/x"][5]) for number in range(7)] == list(range(7))
