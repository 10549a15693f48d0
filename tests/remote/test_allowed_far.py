"""Remote documents lead only to their own folder and to what the user allows: nothing else is requested."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import servers

import hyperslab as hs
from hyperslab.errors import HyperslabError, NotAllowed, ReadError

BYTES = b"12345678"


@pytest.fixture
def web(server: servers.Nginx, root: Path) -> str:
    """The URL of a folder with a file in it, and one beside the folder."""
    folder = root / "docs"
    (folder / "sub").mkdir(parents=True, exist_ok=True)
    for path in (folder / "in.bin", folder / "sub" / "in.bin", root / "out.bin"):
        path.write_bytes(BYTES)
    return f"{server.url}/docs"


def kerchunk(path: Path, name: str) -> None:
    array = {"zarr_format": 2, "shape": [8], "chunks": [8], "dtype": "|u1", "compressor": None, "filters": None}
    array |= {"fill_value": None, "order": "C"}
    refs = {".zgroup": '{"zarr_format": 2}', "x/.zarray": json.dumps(array), "x/0": [name, 0, 8]}
    path.write_text(json.dumps({"version": 1, "refs": refs}))


def escapes(web: str, proxy: str, secret: Path) -> list[str]:
    server = web.removesuffix("/docs")
    host = server.removeprefix("http://")
    return [
        f"{server}/out.bin", f"{web}/../out.bin", f"{web}/%2e%2e/out.bin", f"{web}/..%2fout.bin", f"{web}/..\\out.bin",
        f"{web}/sub/%252e%252e/%252e%252e/out.bin", f"HTTP://{host}/out.bin", f"http://{host}\\@{host}/docs/in.bin",
        f"http://user@{host}/out.bin", f"http://{host}/docs@{host}/out.bin", f"http://{host}/docsx/out.bin",
        f"{proxy}/docs/in.bin", f"{proxy}/out.bin", "http://127.0.0.1/docs/in.bin", "http://localhost:1/docs/in.bin",
        "http://169.254.169.254/latest/meta-data", f"//{host}/out.bin", "../out.bin", "sub/../../out.bin",
        "%2e%2e/out.bin", "..%2fout.bin", "..\\out.bin", str(secret), f"file://{secret}", f"FILE://{secret}",
        f"local://{secret}", "s3://bucket/key", "gs://bucket/key", "ftp://host/x",
    ]  # fmt: skip


def copied(url: str, target: Path, allowed: Any) -> None:
    """Copy references through `hs.index`, and check that the copy does not reveal the secret."""
    hs.index(url, allowed=allowed).save(target)
    found = bytes(hs.open(target, allowed=allowed)["x"][...])
    target.unlink()
    assert found != BYTES


def test_references_far_away_lead_to_their_folder_only(
    web: str, server: servers.Nginx, proxy: servers.Proxy, root: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(BYTES)
    for name in ("in.bin", "sub/in.bin", f"{web}/in.bin", f"{web}/sub/in.bin", f"{web}/./in.bin".replace("/./", "/")):
        kerchunk(root / "docs" / "refs.json", name)
        assert bytes(hs.open(f"{web}/refs.json")["x"][...]) == BYTES
        with pytest.raises(NotAllowed):
            hs.open(f"{web}/refs.json", allowed=())["x"][...]
    asked = len(proxy.seen)
    for name in escapes(web, proxy.url, secret):
        kerchunk(root / "docs" / "refs.json", name)
        for allowed in (None, (), [web]):
            never = tmp_path / "never.json"
            with pytest.raises(HyperslabError):
                copied(f"{web}/refs.json", never, allowed)
            assert not never.exists()
            with pytest.raises(HyperslabError):
                hs.open(f"{web}/refs.json", allowed=allowed)["x"].read()
    assert len(proxy.seen) == asked  # no server was asked


def test_what_the_user_names_is_reached(
    web: str, server: servers.Nginx, proxy: servers.Proxy, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "near.bin").write_bytes(BYTES)
    for name, place in ((f"{server.url}/out.bin", server.url), (f"{proxy.url}/out.bin", proxy.url),
                        (str(tmp_path / "near.bin"), str(tmp_path))):  # fmt: skip
        kerchunk(root / "docs" / "refs.json", name)
        assert bytes(hs.open(f"{web}/refs.json", allowed=[place])["x"][...]) == BYTES
        with pytest.raises(NotAllowed, match=r"allowed=\["):
            hs.open(f"{web}/refs.json", allowed=[f"{place}/elsewhere"])["x"][...]


def test_references_here_lead_anywhere_unless_narrowed(web: str, tmp_path: Path) -> None:
    kerchunk(tmp_path / "refs.json", f"{web}/in.bin")
    assert bytes(hs.open(tmp_path / "refs.json")["x"][...]) == BYTES
    assert bytes(hs.open(tmp_path / "refs.json", allowed=[web])["x"][...]) == BYTES
    for allowed in ((), [tmp_path], [f"{web}/sub"]):
        with pytest.raises(NotAllowed):
            hs.open(tmp_path / "refs.json", allowed=allowed)["x"][...]


def linking(path: Path, target: str) -> None:
    with h5py.File(path, "w") as file:
        file["link"] = h5py.ExternalLink(target, "/good")
        file.create_dataset("raw", (8,), "u1", external=[(target, 0, 8)])
        file["good"] = np.arange(3)


def test_links_and_raw_files_of_files_far_away(web: str, proxy: servers.Proxy, root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["good"] = np.arange(3)
    for target in (*escapes(web, proxy.url, secret), str(secret), secret.name):
        if "\\@" in target:
            continue
        linking(root / "docs" / "a.h5", target)
        found: Any = hs.open(f"{web}/a.h5")
        assert list(found["good"][...]) == [0, 1, 2]
        assert set(found.arrays) - {"raw"} == {"good"}
        for name in ("link", "raw"):
            with pytest.raises((HyperslabError, FileNotFoundError, KeyError)):
                found[name][...]
    linking(root / "docs" / "b.h5", "in.bin")
    linking(root / "docs" / "a.h5", "b.h5")
    assert list(hs.open(f"{web}/a.h5")["link"][...]) == [0, 1, 2]
    assert bytes(hs.open(f"{web}/b.h5")["raw"][...]) == BYTES
    with pytest.raises(NotAllowed):
        hs.open(f"{web}/a.h5", allowed=())["link"]


def test_references_of_a_file_far_away_lead_no_further_than_it(web: str, root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(BYTES)
    linking(root / "docs" / "a.h5", str(secret))
    for target in ("refs.hs", "refs.json"):
        with pytest.raises((NotAllowed, HyperslabError)):
            hs.index(f"{web}/a.h5").save(tmp_path / target)
        assert not (tmp_path / target).exists()
    with h5py.File(root / "docs" / "a.h5", "w") as file:
        file["link"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "/good")
        file["good"] = np.arange(3)
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["good"] = np.arange(3)
    hs.index(f"{web}/a.h5").save(tmp_path / "refs.hs")
    with pytest.raises(ReadError, match="not allowed"):
        hs.open(tmp_path / "refs.hs")["link"]


def test_documents_of_dmrpp_lead_to_their_folder_only(
    web: str, proxy: servers.Proxy, root: Path, tmp_path: Path
) -> None:
    text = """<?xml version="1.0" encoding="ISO-8859-1"?>
<Dataset xmlns="http://xml.opendap.org/ns/DAP/4.0#" xmlns:dmrpp="http://xml.opendap.org/dap/dmrpp/1.0.0#"
 dapVersion="4.0" dmrVersion="1.0" name="a" dmrpp:href="{}"><Dimension name="n" size="8"/>
<Byte name="x"><Dim name="/n"/>
<dmrpp:chunks byteOrder="LE"><dmrpp:chunk offset="0" nBytes="8" {}/></dmrpp:chunks></Byte>
</Dataset>"""
    secret = tmp_path / "secret.bin"
    secret.write_bytes(BYTES)
    document = root / "docs" / "a.dmrpp"
    document.write_text(text.format("in.bin", ""))
    assert bytes(hs.open(f"{web}/a.dmrpp")["x"][...]) == BYTES
    for name in escapes(web, proxy.url, secret):
        for filled in (text.format(name, ""), text.format("in.bin", f'href="{name}"')):
            document.write_text(filled)
            with pytest.raises(HyperslabError):
                hs.open(f"{web}/a.dmrpp")["x"][...]
    here = tmp_path / "here.dmrpp"
    here.write_text(text.format(secret.name, ""))
    assert bytes(hs.open(here)["x"][...]) == BYTES
    with pytest.raises(NotAllowed):
        hs.open(here, allowed=())["x"][...]
