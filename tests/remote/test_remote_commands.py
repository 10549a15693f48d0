"""The commands take URLs."""

from __future__ import annotations

import json
import subprocess

import pytest
import servers

from command_line import run_hyperslab


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return run_hyperslab(*words)


@pytest.mark.slow
def test_info_read_and_verify(server: servers.Nginx) -> None:
    url = f"{server.url}/private/ocean.h5"
    options = ["--option", f"username={servers.USER}", "--option", f"password={servers.PASSWORD}"]
    said = json.loads(run("info", url, "--json", *options).stdout)
    assert {array["name"] for array in said["arrays"]} >= {"/deflated", "/whole"}
    assert "5." in run("read", url, "group/deep", "1, 1", *options).stdout
    assert run("verify", url, *options).returncode == 0


@pytest.mark.slow
def test_mistakes_are_named(server: servers.Nginx) -> None:
    refused = run("info", f"{server.url}/private/ocean.h5")
    assert (refused.returncode, "HTTP 401" in refused.stderr) == (1, True), refused.stderr
    assert run("info", f"{server.url}/nothing.h5").returncode == 2
    assert run("info", f"{server.url}/ocean.h5", "--option", "passwort").returncode == 2
