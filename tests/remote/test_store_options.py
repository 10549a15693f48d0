"""Options by the names of s3fs, gcsfs, adlfs, fsspec's HTTP file system and obstore; profiles of AWS."""

from __future__ import annotations

import os
import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hyperslab.archive.far import remote
from hyperslab.archive.far.remote import Remote
from hyperslab.archive.far.store_options import configured, translated
from hyperslab.archive.tree.locating import locate
from hyperslab.errors import UsageError

KEYS = {"aws_access_key_id": "K", "aws_secret_access_key": "S"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, without anything of AWS in the environment."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".aws").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"key": "K", "secret": "S", "token": "T"}, {**KEYS, "aws_session_token": "T"}),
        ({"username": "K", "password": "S"}, KEYS),
        ({"anon": True, "default_block_size": 1 << 20, "cache_type": "readahead"}, {"aws_skip_signature": True}),
        ({"anon": False, "use_ssl": True, "version_aware": False, "session": None}, {"aws_skip_signature": False}),
        ({"client_kwargs": {"region_name": "eu-1", "endpoint_url": "http://h", "verify": True}},
         {"aws_region": "eu-1", "aws_endpoint": "http://h"}),
        ({"config_kwargs": {"s3": {"addressing_style": "virtual"}, "connect_timeout": 3, "read_timeout": 7,
                            "retries": {"max_attempts": 4, "mode": "adaptive"}, "max_pool_connections": 50}},
         {"aws_virtual_hosted_style_request": True, "connect_timeout": 3.0, "timeout": 7.0, "attempts": 4}),
        ({"config_kwargs": {"signature_version": "UNSIGNED"}}, {"aws_skip_signature": True}),
        ({"s3_additional_kwargs": {"RequestPayer": "requester"}}, {"aws_request_payer": True}),
        ({"use_ssl": False, "endpoint_url": "http://h:9000"}, {"aws_endpoint": "http://h:9000"}),
        ({"skip_signature": True, "region": "us-west-2", "client_options": {"timeout": "30s", "allow_http": True},
          "retry_config": {"max_retries": 2, "retry_timeout": timedelta(minutes=1)}},
         {"skip_signature": True, "aws_region": "us-west-2", "timeout": 30.0, "attempts": 3, "patience": 60.0}),
        ({"credential_provider": lambda: {"access_key_id": "K", "secret_access_key": "S", "expires_at": None}},
         {"access_key_id": "K", "secret_access_key": "S"}),
    ],
)  # fmt: skip
def test_names_of_s3fs_and_obstore(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert translated("s3", given) == expected


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("s3", {"session": object()}, "session .give key="),
        ("s3", {"client_kwargs": {"verify": False}}, "verify .hyperslab always checks certificates"),
        ("s3", {"config_kwargs": {"proxies": {"https": "http://hunter2"}}}, "proxies .set HTTPS_PROXY"),
        ("s3", {"version_aware": True}, "FileChanged"),
        ("s3", {"use_ssl": False}, "endpoint_url='http"),
        ("s3", {"s3_additional_kwargs": {"SSECustomerKey": "hunter2"}}, "SSECustomerKey"),
        ("https", {"ssl": False}, "ssl .hyperslab always checks certificates"),
        ("gs", {"token": "browser"}, "gcloud auth application-default login"),
        ("gs", {"requester_pays": True}, "copy the file"),
        ("az", {"credential": object()}, "give account_key="),
        ("s3", {"client_options": {"proxy_url": "http://hunter2"}}, "proxy_url .set HTTPS_PROXY"),
    ],
)
def test_what_cannot_be_taken_over_says_what_to_write(kind: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        translated(kind, given)
    assert "hunter2" not in str(raised.value)


def test_names_of_other_file_systems() -> None:
    http = translated("https", {"block_size": 0, "cookies": {"a": "b"}, "client_kwargs": {"trust_env": True}})
    assert http == {"headers": {"Cookie": "a=b"}, "client_kwargs": {}}
    assert translated("https", {"client_kwargs": {"timeout": 90}})["timeout"] == 90.0
    gcs = {"token": "anon", "access": "read_only", "consistency": "none", "requests_timeout": 5}
    assert translated("gs", gcs) == {"token": "anon", "timeout": 5.0}
    assert translated("az", {"credential": "?sig=1", "socket_timeout": 9}) == {"sas_token": "?sig=1", "timeout": 9.0}


def test_profiles(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = D\naws_secret_access_key = DS\n"
        "[lab]\naws_access_key_id = L\naws_secret_access_key = LS\naws_session_token = LT\n"
    )
    (home / ".aws" / "config").write_text(
        "[default]\nregion = eu-central-1\n[profile lab]\nregion = us-west-2\nservices = lab\n"
        "[services lab]\ns3 =\n  endpoint_url = http://lab:9000\n[profile empty]\nregion = x\n"
    )
    lab = {"aws_access_key_id": "L", "aws_secret_access_key": "LS", "aws_session_token": "LT",
           "aws_region": "us-west-2", "aws_endpoint": "http://lab:9000"}  # fmt: skip
    default = {"aws_access_key_id": "D", "aws_secret_access_key": "DS", "aws_region": "eu-central-1"}
    assert translated("s3", {}) == default
    assert translated("s3", {"profile": "lab"}) == lab
    assert translated("s3", {"profile": "lab", "key": "K", "secret": "S", "region": "r"}) == {
        **KEYS, "aws_region": "r", "aws_endpoint": "http://lab:9000",
    }  # fmt: skip
    assert translated("s3", {"profile": "empty"}) == {"aws_region": "x"}
    assert translated("s3", {"anon": True}) == {"aws_skip_signature": True, "aws_region": "eu-central-1"}
    monkeypatch.setenv("AWS_PROFILE", "lab")
    assert translated("s3", {}) == lab
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "E")  # counts more than a profile that nobody named here
    assert "aws_access_key_id" not in translated("s3", {})
    assert translated("s3", {"profile": "lab"}) == lab
    with pytest.raises(UsageError, match=r"no profile 'nobody' in .*credentials: there are default, lab, empty"):
        translated("s3", {"profile": "nobody"})


def test_keys_of_single_sign_on_come_from_its_cache(home: Path) -> None:
    pytest.importorskip("botocore")
    (home / ".aws" / "config").write_text(
        "[profile sso]\nsso_start_url = https://x.awsapps.com/start\nsso_region = us-east-1\n"
        "sso_account_id = 1\nsso_role_name = r\nregion = us-east-1\n"
        "[profile program]\ncredential_process = "
        """echo '{"Version": 1, "AccessKeyId": "P", "SecretAccessKey": "PS", "SessionToken": "PT"}'\n"""
    )
    assert translated("s3", {"profile": "program"})["aws_session_token"] == "PT"
    with pytest.raises(UsageError, match=r"'sso' gives no keys .*aws sso login --profile sso"):
        translated("s3", {"profile": "sso"})


def test_configuration_of_fsspec(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setitem(fsspec.config.conf, "s3", {"anon": True, "default_block_size": 5})
    monkeypatch.setitem(fsspec.config.conf, "https", {"headers": {"Authorization": "hunter2"}})
    assert configured("s3") == {"anon": True}
    assert configured("https") == {"headers": {"Authorization": "hunter2"}}
    sent: list[Any] = []
    monkeypatch.setattr(remote, "RemoteFile", lambda _, **given: sent.append(given["headers"]))
    Remote("https://data.example.org/named-by-a-document.nc").file()
    named_by_the_user, _ = locate("https://data.example.org/x.nc", {})
    assert isinstance(named_by_the_user, Remote)
    named_by_the_user.file()
    assert sent == [[], [("Authorization", "hunter2")]]


def test_a_pickle_has_the_name_of_a_profile_and_no_key() -> None:
    remote = Remote("s3://bucket/x.nc", {"profile": "lab", "key": "hunter2", "username": "hunter3"})
    again = pickle.loads(pickle.dumps(remote))
    assert again.options == {"profile": "lab"}
    assert again.lacking == ("key", "username")
