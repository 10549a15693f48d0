"""`verify_folder`: versions at a URL of which something is missing or damaged."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import h5py
import pytest
from far_histories import BUCKET, Far, commit
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.cli.versions import app
from hyperslab.errors import NoSuchRemoteFile
from hyperslab.versions import verify_folder
from hyperslab.versions.layout.fingerprint_log import packed, record_body

pytest.importorskip("obstore", reason="not installed: pip install 'hyperslab[far]'")
pytest.importorskip("boto3", reason="not installed: pip install 'hyperslab[dev]'")


def test_what_is_missing_or_damaged_at_a_url_is_named(tmp_path: Path, s3: str) -> None:
    far, path = Far(s3, "checked"), tmp_path / "one.h5"
    with hs.VersionedFile(path, "w") as file:
        commit(file, "a1", 1)
        file.create_tag("paper", "a1")
        commit(file, "b1", 62, branch="side")
        commit(file, "a2", 123)
        file.merge("side", conflict="theirs", name="m")
    far.push(path, "paper")
    far.push(path)
    refs = far.get("refs")
    said = record_body(refs, 0, len(refs) - 8)
    first, second = (f"bundles/{one['sha256']}.bundle" for one in said["bundles"])
    options = [f"--option={key}={value}" for key, value in far.options.items()]

    def found(*, damages: int) -> str:
        done = CliRunner().invoke(app, ["verify", far.url, "--json", *options])
        said = json.loads(done.stdout)
        assert (said["version_count"], said["is_whole"], done.exit_code) == (4, not damages, int(damages > 0))
        assert len(said["damages"]) == damages, said["damages"]
        return " ".join(said["damages"])

    assert not found(damages=0)
    done = CliRunner().invoke(app, ["verify", far.url, *options])
    assert (done.exit_code, "4 versions in 2 bundles" in done.stdout) == (0, True)
    stored = far.get(first)
    for content, what in ((stored[:-1] + b"x", "does not have the hash"), (stored[:-1], "bytes instead of")):
        far.put(first, content)
        text = found(damages=1)
        assert all(part in text for part in (what, f"{first} ", "(versions a1)"))
    far.client.delete_object(Bucket=BUCKET, Key=f"{far.name}/{first}")
    assert "is missing" in found(damages=1)
    far.put(first, stored)
    a1 = said["bundles"][0]["versions"][0]
    for changed, what in (
        ({"bundles": said["bundles"][::-1]}, "its parent 'a1' comes after it"),
        ({"tags": {"paper": {"target": ["nobody", a1["target"][1]]}}}, "tag 'paper' is at 'nobody'"),
    ):
        far.put("refs", packed({**said, **changed}))
        text = found(damages=2 if "bundles" in changed else 1)
        assert what in text
    with h5py.File(tmp_path / "x.h5", "w") as made:  # a bundle that lacks chunks, under a name that is right
        (tmp_path / "second.h5").write_bytes(far.get(second))
        with h5py.File(tmp_path / "second.h5") as file:
            for name in file:
                file.copy(name, made)
            made.attrs.update(file.attrs)
        number = record_body(bytes(made["said"][...]), 0, len(made["said"]) - 8)["stacks"]["words"]
        made[f"stacks/{number}/hashes"][0] = 0
    stored = (tmp_path / "x.h5").read_bytes()
    other = {**said["bundles"][1], "sha256": hashlib.sha256(stored).hexdigest(), "nbytes": len(stored)}
    far.put(f"bundles/{other['sha256']}.bundle", stored)
    far.put("refs", packed({**said, "bundles": [said["bundles"][0], other]}))
    assert "1 chunks of words in version 'b1' are in no bundle" in found(damages=2)
    with pytest.raises(NoSuchRemoteFile, match="no versions at"):
        verify_folder(f"{far.url}/nothing", storage_options=far.options)
