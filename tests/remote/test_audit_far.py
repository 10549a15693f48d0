"""What an audit counts for a local file is what a server's log has when the file is opened and read from there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import servers

import hyperslab as hs
from hyperslab.audit.accesses import selections
from hyperslab.audit.auditing import audits
from hyperslab.audit.facts import facts_of
from hyperslab.audit.judging import Question, audit_file

sys.path.append(str(Path(__file__).parents[1] / "audit"))
import audited_files

KINDS = ["good", "small-chunks", "scattered-metadata", "cut-coordinates", "tiny-arrays"]


@pytest.fixture(scope="module")
def served(server: servers.Nginx, root: Path) -> dict[str, Path]:
    """The files; the host is known, as the first request of a process opens several connections."""
    hs.open(f"{server.url}/ocean.h5").close()
    return {kind: audited_files.drawn(root, kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_requests_and_bytes_to_open_are_those_of_the_log(
    server: servers.Nginx, served: dict[str, Path], kind: str
) -> None:
    path = served[kind]
    here = audit_file(str(path), Question())
    seen = len(server.requests())
    hs.open(f"{server.url}/{path.name}").close()
    requests = server.requests()[seen:]
    assert (here.request_count, here.fetched_nbytes) == (len(requests), sum(nbytes for _, nbytes in requests))
    seen = len(server.requests())
    there = audit_file(f"{server.url}/{path.name}", Question())
    assert len(server.requests()) - seen == here.request_count, "it reads nothing but metadata"
    for name in ("request_count", "round_count", "fetched_nbytes", "metadata_nbytes", "place_count", "nbytes", "grade"):
        assert getattr(there, name) == getattr(here, name), name
    assert there.accesses == here.accesses


@pytest.mark.parametrize("kind", ["small-chunks", "scattered-metadata"])
def test_requests_of_accesses_are_those_of_the_log(server: servers.Nginx, served: dict[str, Path], kind: str) -> None:
    path = served[kind]
    costs = {cost.access: cost for cost in audit_file(str(path), Question()).accesses if cost.array}
    name = next(iter(costs.values())).array
    main = next(one for one in facts_of(str(path)).arrays if one.name == name)
    far = hs.open(f"{server.url}/{path.name}", chunk_cache_nbytes=0)[name]
    for access, selection in selections(main).items():
        seen = len(server.requests())
        far.read(selection)
        requests = server.requests()[seen:]
        cost = costs[access]
        assert (cost.request_count, cost.fetched_nbytes) == (len(requests), sum(nbytes for _, nbytes in requests))


def test_a_server_that_fails_is_a_line(server: servers.Nginx, served: dict[str, Path], root: Path) -> None:
    name = served["good"].name
    missing, folder = f"{server.url}/absent.nc", f"{server.url}/folder"
    (root / "folder").mkdir()
    found = {one.name: one for one in audits([f"{server.url}/{name}", missing, folder], Question(require="cloud"))}
    assert found[f"{server.url}/{name}"].grade == "good"
    assert found[missing].grade == found[folder].grade == "unreadable"
    assert (found[missing].code, found[missing].unmet) == ("no-such-remote-file", (found[missing].error,))


@pytest.mark.parametrize("fault", ["404", "short", "whole", "range", "etag", "sizeless"])
def test_a_server_that_lies_in_the_middle_is_a_line(proxy: servers.Proxy, served: dict[str, Path], fault: str) -> None:
    proxy.behaviour.after, proxy.behaviour.always = 1, fault
    found = audit_file(
        f"{proxy.url}/{served['scattered-metadata'].name}", Question(options={"attempts": 2, "patience": 1.0})
    )
    assert (found.grade, found.faults[0].kind) in (("unreadable", "unreadable"), ("slow", "scattered-metadata"))
    assert found.grade == "unreadable" or found.notes
    assert "fault in hyperslab" not in found.reason


def test_references_and_their_source_are_judged(tmp_path: Path, served: dict[str, Path]) -> None:
    path = shutil.copy(served["good"], tmp_path / "a.nc")
    hs.index(path).save(tmp_path / "a.hs")
    found = audit_file(str(tmp_path / "a.hs"), Question())
    assert (found.format, found.array_count, found.grade) == ("references", 2, "good")


def test_no_secret_of_a_url_is_in_what_is_found(server: servers.Nginx, served: dict[str, Path]) -> None:
    for name in (served["scattered-metadata"].name, "absent.nc"):
        url = f"{server.url}/{name}?signature=secret".replace("://", "://reader:secret@")
        (found,) = audits([url], Question(require="cloud"))
        assert "secret" not in repr(found.to_dict())
        assert found.name == f"{server.url}/{name}"


def test_a_pattern_in_a_bucket_names_its_files(
    s3: str, served: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    boto3 = pytest.importorskip("boto3", reason="not installed: pip install 'hyperslab[dev]'")
    login = {"aws_access_key_id": "access", "aws_secret_access_key": "very secret", "region_name": "us-east-1"}
    for name, value in login.items():
        monkeypatch.setenv(name.upper(), value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client = boto3.client("s3", endpoint_url=s3, **login)
    client.create_bucket(Bucket="archive")
    for name in ("a/1.nc", "a/2.nc", "a/notes.txt", "b/3.nc"):
        client.put_object(Bucket="archive", Key=name, Body=served["small-chunks"].read_bytes())
    line = [sys.executable, "-m", "hyperslab", "audit", "--json", "--option", f"endpoint_url={s3}"]
    done = subprocess.run([*line, "s3://archive/*/*.nc"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)["files"]
    assert {one["name"] for one in found} == {f"s3://archive/{name}" for name in ("a/1.nc", "a/2.nc", "b/3.nc")}
    here = audit_file(str(served["small-chunks"]), Question())
    assert {(one["grade"], one["request_count"]) for one in found} == {(here.grade, here.request_count)}
    nothing = subprocess.run([*line, "s3://archive/*/*.zzz"], capture_output=True, text=True, check=False)
    assert (nothing.returncode, "no file matches" in nothing.stderr) == (2, True), nothing.stderr
