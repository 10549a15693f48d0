"""What libraries written in Rust do with hostile options: an error of ours, never a `PanicException`."""

from __future__ import annotations

import itertools

import pytest

import hyperslab as hs
from hyperslab.errors import HyperslabError, InternalError, UsageError
from hyperslab.panics import panics_named

SOON = {"anon": True, "attempts": 1, "connect_timeout": 0.2, "timeout": 0.5, "patience": 0.5}


@pytest.mark.parametrize("url", ["s3://b/x.nc", "gs://b/x.nc", "s3://b/*.nc"])
@pytest.mark.parametrize(
    "endpoint", ["", "http://", "http://[::1", "http://a b/", "here", "true", "http://127.0.0.1:99999", "unix://"]
)
def test_an_endpoint_that_is_no_url_is_refused(url: str, endpoint: str) -> None:
    with pytest.raises(UsageError, match=r"is not a URL such as https://host:port"):
        hs.open(url, storage_options={**SOON, "endpoint_url": endpoint})
    if "*" in url:
        with pytest.raises(UsageError, match=r"is not a URL such as https://host:port"):
            hs.index(url, storage_options={**SOON, "endpoint_url": endpoint})


@pytest.mark.parametrize("region", ["", "\n", "x y", "é"])
def test_a_region_that_is_no_name_is_refused(region: str) -> None:
    with pytest.raises(UsageError, match="is not the name of a region"):
        hs.open("s3://b/x.nc", storage_options={**SOON, "region": region})


def test_no_option_lets_a_panic_out() -> None:
    names = ("account_name", "account_host", "token", "key", "secret", "aws_virtual_hosted_style_request")
    values = ("x y", "\n", "é", "true")
    urls = (
        "s3://é/x",
        "s3://b c/x",
        "s3://b/\0",
        "gs://b%/x",
        "az://a b/x",
        "abfs://c@a/x",
        "http://[/x",
        "http://%00/",
    )
    for url, name, value in itertools.product(urls, names, values):
        with pytest.raises((HyperslabError, ValueError)):
            hs.open(url, storage_options={**SOON, name: value})


def test_a_panic_in_our_own_crates_is_named() -> None:
    """A bucket whose name no host can have: object_store makes a URL of it, and panics."""
    options = {**SOON, "aws_virtual_hosted_style_request": "true", "region": "us-east-1"}
    with pytest.raises(InternalError, match=r"at object_store-.*\.rs:\d+: .*please report it"):
        hs.open("s3://é/x", storage_options=options)


def test_a_panic_of_a_library_is_named() -> None:
    pytest.importorskip("obstore", reason="not installed: pip install 'hyperslab[far]'")
    import obstore.store

    with pytest.raises(InternalError, match="making a store: a fault in the library"), panics_named("making a store"):
        obstore.store.from_url("s3://b", config={"allow_http": "true"})
