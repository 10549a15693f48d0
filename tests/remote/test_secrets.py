"""Credentials reach only the server that they are meant for, and show up nowhere else."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
import servers
import xarray as xr

import hyperslab as hs
from hyperslab.archive.far.remote import Remote, SourceResolver, _registered, _registered_for, shown
from hyperslab.errors import UsageError

QUERY = "X-Amz-Signature=hunter5"


@pytest.fixture(autouse=True)
def nothing_registered() -> Iterator[None]:
    before = dict(_registered)
    _registered.clear()
    yield
    _registered.clear()
    _registered.update(before)


@pytest.mark.parametrize(
    "url",
    [
        "https://data.example.org/private/x.nc",
        "https://DATA.Example.ORG:443/private",
        "HTTPS://data.example.org./private/a/b.nc?x=1#y",
        "https://data.example.org/public/../private/x.nc",
        "https://data.example.org/public/%2e%2e/private/x.nc",
        "https://data.example.org/pri%76ate/x.nc",
        "https://reader:secret@data.example.org/private/x.nc",
        "https:\\\\data.example.org\\private\\x.nc".replace("https:\\\\", "https://"),
    ],
)
def test_credentials_reach_what_is_below(url: str) -> None:
    hs.credentials("https://data.example.org/private/", token="secret")
    assert _registered_for(url) == {"token": "secret"}


@pytest.mark.parametrize(
    "url",
    [
        "https://data.example.org.evil.com/private/x.nc",
        "https://data.example.org@evil.com/private/x.nc",
        "https://data.example.org:secret@evil.com/private/x.nc",
        "https://evil.com/?https://data.example.org/private/x.nc",
        "https://evil.com\\@data.example.org/private/x.nc",
        "https://evil.com?@data.example.org/private/x.nc",
        "https://evil.com#@data.example.org/private/x.nc",
        "https://data.example.org:8443/private/x.nc",
        "http://data.example.org/private/x.nc",
        "https://data.example.org/private2/x.nc",
        "https://data.example.org/private/../public/x.nc",
        "https://data.example.org/private/%2E%2e/public/x.nc",
        "https://data.example.org/private/..%2fpublic/x.nc",
        "https://data.example.org/private%2F..%2Fpublic/x.nc",
        "https://data.example.org/",
        "https://dаta.example.org/private/x.nc",
        "https://",
    ],
)
def test_credentials_reach_nothing_else(url: str) -> None:
    hs.credentials("https://data.example.org/private", token="secret")
    assert _registered_for(url) == {}


def test_the_longest_path_counts() -> None:
    hs.credentials("https://h/", token="root")
    hs.credentials("https://h/a", token="a")
    hs.credentials("https://h/a/b/", token="b")
    said = {
        url: _registered_for(f"https://h{url}")["token"] for url in ("/", "/x", "/a", "/a/x", "/ab", "/a/b", "/a/b/c")
    }
    assert list(said.values()) == ["root", "root", "a", "a", "root", "b", "b"]
    hs.credentials("https://H:443/a/b")
    assert _registered_for("https://h/a/b/c") == {"token": "a"}


def test_buckets_are_exact() -> None:
    hs.credentials("s3://ocean", key="ours")
    hs.credentials("s3://ocean/a/", key="below")
    found = [
        _registered_for(f"s3{url}").get("key") for url in ("://ocean/x", "a://ocean/a/x", "://ocean/ab", "://ocean2/x")
    ]
    assert found == ["ours", "below", "ours", None]
    assert _registered_for("gs://ocean/x") == {}
    hs.credentials("s3://", key="all")
    assert _registered_for("s3://ocean2/x") == {"key": "all"}
    assert _registered_for("s3://ocean/x") == {"key": "ours"}
    with pytest.raises(UsageError, match="names no server"):
        hs.credentials("https://", token="x")
    with pytest.raises(UsageError, match="is ambiguous"):
        hs.credentials("https://h/a%2f..%2fb", token="x")


def test_a_token_goes_only_to_its_port(server: servers.Nginx, proxy: servers.Proxy) -> None:
    hs.credentials(server.url, token="hunter2")
    hs.open(f"{proxy.url}/ocean.h5")
    assert all("authorization" not in {name.lower() for name in seen} for seen in proxy.seen)


def test_the_server_of_a_url_is_read_in_one_way() -> None:
    assert shown("https://user:hunter2@h:443/a/../b?sig=hunter3#x") == "https://h/b"
    assert shown("https://evil.com?@data.example.org/x") == "https://evil.com/"
    assert shown("https://evil.com\\@data.example.org/x") == "https://evil.com/@data.example.org/x"
    assert shown("s3://key:hunter2@bucket/a@b?c") == "s3://bucket/a@b?c"
    assert shown("abfs://container@account.dfs.core.windows.net/x") == "abfs://container@account.dfs.core.windows.net/x"
    assert "hunter" not in shown("https://user:hunter2@[bad/x?hunter3")


def secretive(server: servers.Nginx) -> str:
    login = f"{servers.USER}:{servers.PASSWORD.replace(' ', '%20')}"
    return f"http://{login}@127.0.0.1:{server.port}/private/ocean.h5?{QUERY}"


def leaks(*shown: object) -> list[str]:
    texts = [one.decode("latin-1") if isinstance(one, bytes) else str(one) for one in shown]
    return [text for text in texts if "sesame" in text or "hunter" in text]


def test_places_show_no_secrets(server: servers.Nginx) -> None:
    opened = hs.open(secretive(server), storage_options={"headers": {"X-Key": "hunter2"}})
    place = opened._file.location
    assert isinstance(place, Remote)
    near = SourceResolver({"token": "hunter3"}, near=secretive(server))
    array = opened["deflated"]
    assert not leaks(
        *(
            repr(place),
            str(place),
            f"{place}",
            repr(near),
            repr(opened),
            repr(array),
            opened.filename,
            repr(place.file()),
        ),
        *(pickle.dumps(one) for one in (place, near, opened, array)),
        *(array.__dask_tokenize__(), hs.stats()),
    )


def test_datasets_keep_no_secrets(server: servers.Nginx) -> None:
    found = xr.open_dataset(secretive(server), engine="hyperslab", chunks={})
    assert found.encoding["source"] == f"{server.url}/private/ocean.h5"
    tree = xr.open_datatree(secretive(server), engine="hyperslab", group="group")
    again = pickle.dumps(found)
    sources = [variable.encoding.get("source") for variable in found.variables.values()]
    nodes = [node.encoding for node in tree.subtree]
    graph = dict(found["deflated"].data.dask)
    assert not leaks(repr(found), found.encoding, sources, nodes, again, pickle.dumps(tree), pickle.dumps(graph))
    hs.credentials(server.url, username=servers.USER, password=servers.PASSWORD, query=QUERY)
    assert (pickle.loads(again)["plain"][3, 4].values == found["plain"][3, 4].values).all()
    reopened = xr.open_dataset(found.encoding["source"], engine="hyperslab")  # as users do
    assert reopened.sizes == found.sizes


@pytest.mark.parametrize("suffix", [".hs", ".json", ".parquet"])
def test_saved_references_hold_no_secrets(server: servers.Nginx, tmp_path: Path, suffix: str) -> None:
    login = {"username": servers.USER, "password": servers.PASSWORD}
    url = secretive(server).partition("?")[0]
    path = tmp_path / f"refs{suffix}"
    hs.index(url, storage_options={"headers": {"X-Key": "hunter2"}}).save(path, skip_unsupported=True)
    for file in [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]:
        assert not leaks(file.read_bytes())
    assert hs.open(path, storage_options=login)["group/deep"][1, 1] == 5.0
