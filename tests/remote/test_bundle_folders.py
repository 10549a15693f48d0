"""Versions that go to an object store and back: what comes, what stays, who wins, and what a kill leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import servers
from far_histories import BUCKET, Far, commit, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab.cli.versions import app
from hyperslab.errors import DamagedFile, HyperslabError, NoSuchRemoteFile, RemoteError, Unsupported, UsageError
from hyperslab.lab import serving
from hyperslab.versions import apply, bundle, pull, push
from hyperslab.versions.layout.fingerprint_log import packed, record_body
from hyperslab.versions.transfer import far_push
from hyperslab.versions.transfer.bundle_folder import BundleFolder

obstore = pytest.importorskip("obstore", reason="not installed: pip install 'hyperslab[far]'")
pytest.importorskip("boto3", reason="not installed: pip install 'hyperslab[dev]'")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("gateway")
    absent = serving.absent("versitygw")
    if absent is not None:
        pytest.skip(absent)
    with serving.versitygw(folder) as url:
        yield url, folder


@pytest.fixture
def far(s3: str, request: pytest.FixtureRequest) -> Far:
    return Far(s3, request.node.name.replace("[", "-").replace("]", "")[:60])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "one.h5"
    with hs.VersionedFile(made, "w") as file:
        commit(file, "a1", 1)
        commit(file, "b1", 62, branch="side", message="gauge", author="Ada")
        commit(file, "a2", 123)
        file.create_tag("paper", "a1", message="Figure 3")
        file.merge("side", conflict="theirs", name="m", message="both")
        with file.stage_version("a3") as version:
            version["g/x"].resize((415,))
            version.create_dataset("y", data=np.arange(12).reshape(3, 4), chunks=(2, 3), fillvalue=-1)
    return made


HEADS = {"main": "a3", "side": "b1"}


# --------------------------------------------------------------------------------------------------------- what goes


def test_versions_go_to_an_object_store_and_back(path: Path, tmp_path: Path, far: Far) -> None:
    taken, other = far.push(path), tmp_path / "other.h5"
    assert (taken.path, taken.is_guarded, set(taken.versions)) == (far.url, True, {"a1", "a2", "a3", "b1", "m"})
    assert (taken.branches, taken.tags, taken.diverged) == (HEADS, {"paper": "a1"}, {})
    assert sorted(key.partition("/")[0] for key in far.objects()) == ["bundles", "hyperslab-bundles", "refs"]
    came = far.pull(other)
    assert (came.branches, came.tags, came.chunk_count) == (HEADS, {"paper": "a1"}, taken.chunk_count)
    same(path, other)
    with hs.VersionedFile(other) as file:
        assert (file.current_version, file.checked_out, file.tags["paper"].message) == ("a3", "main", "Figure 3")
        assert file.merged_into("m") == "b1"
    before = far.objects()
    again = far.push(path)
    assert (again.versions, again.chunk_count, again.branches, far.objects()) == ([], 0, {}, before)
    assert far.pull(other).versions == []


def test_each_push_sends_only_what_is_not_there(path: Path, tmp_path: Path, far: Far) -> None:
    far.push(path)
    with hs.VersionedFile(path, "r+") as file:
        commit(file, "a4", 7)
    taken = far.push(path)
    assert (taken.versions, taken.branches) == (["a4"], {"main": "a4"})
    assert taken.chunk_count == 2  # one of x, one of words
    assert [[one.target.version for one in each.versions][-1] for each in far.refs().bundles][1:] == ["a4"]
    other = tmp_path / "other.h5"
    assert far.pull(other, "side").versions == ["a1", "b1"]
    same(path, other, ["a1", "b1"])
    assert far.pull(other, "paper", "a2").versions == ["a2"]
    with pytest.raises(KeyError, match=r"'sidr' at s3://.*did you mean 'side'"):
        far.pull(other, "sidr")
    assert far.pull(other).branches == {"main": "a4"}
    same(path, other)


def test_a_chunk_that_another_bundle_has_is_not_sent_again_and_found_there(
    path: Path, tmp_path: Path, far: Far
) -> None:
    far.push(path)
    with hs.VersionedFile(path, "r+") as file, file.stage_version("again", "a1", branch="third") as version:
        version["g/x"][123] = 1123  # as a2, which it does not come from
        version["words"][3] = "w123"
    taken = far.push(path, "third")
    assert (taken.versions, taken.chunk_count) == (["again"], 0)
    other = tmp_path / "other.h5"
    assert far.pull(other, "third").versions == ["a1", "again"]
    same(path, other, ["a1", "again"])


def test_a_long_push_makes_several_bundles(
    path: Path, tmp_path: Path, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(far_push, "BUNDLE_NBYTES", -1)  # each version is one
    told: list[Any] = []
    push(path, far.url, storage_options=far.options, progress=lambda *said: told.append(said))
    assert [one[1:] for one in told] == [(number, 5) for number in range(5)]
    assert len(far.refs().bundles) == 5
    far.pull(tmp_path / "other.h5")
    same(path, tmp_path / "other.h5")


def test_other_servers_do_it_too(path: Path, tmp_path: Path, gateway: tuple[str, Path]) -> None:
    url, folder = gateway
    far = Far(url, "a b/survey")
    assert far.push(path).is_guarded
    assert far.push(path, "side").branches == {}
    far.pull(tmp_path / "other.h5")
    same(path, tmp_path / "other.h5")
    with servers.nginx(tmp_path / "run", folder) as web:
        pull(tmp_path / "third.h5", f"{web.url}/{BUCKET}/a b/survey")
        same(path, tmp_path / "third.h5")
        with pytest.raises(UsageError, match="can only be read"):
            push(path, f"{web.url}/{BUCKET}/survey")


# -------------------------------------------------------------------------------------------------------- who wins


def before_swap(monkeypatch: pytest.MonkeyPatch, doing: Callable[[], object]) -> None:
    """Do something just before the next push replaces `refs`."""
    swap, left = BundleFolder.swap, [doing]

    def first(self: BundleFolder, *said: Any, **also: Any) -> bool:
        if left:
            left.pop()()
        return swap(self, *said, **also)

    monkeypatch.setattr(BundleFolder, "swap", first)


def test_of_two_pushes_to_one_branch_one_wins_and_the_other_is_told(
    path: Path, tmp_path: Path, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.h5"
    far.push(path)
    far.pull(other)
    for one, name in ((path, "mine"), (other, "theirs")):
        with hs.VersionedFile(one, "r+") as file:
            commit(file, name, 5 + len(name))
    before_swap(monkeypatch, lambda: far.push(other))
    taken = far.push(path)
    assert taken.diverged == {"main": "it has versions of its own here: pull, merge, and push again"}
    assert far.refs().branches["main"].version == "theirs"
    assert "mine" in far.refs().versions  # it is there, and nothing was lost
    assert far.pull(path).diverged == {"main": "it has versions of its own here: merge 'theirs'"}
    with hs.VersionedFile(path, "r+") as file:
        file.merge("theirs", name="both", conflict="ours")
    assert far.push(path).branches == {"main": "both"}
    far.pull(other)
    same(path, other)


def test_pushes_of_two_branches_both_come_through(
    path: Path, tmp_path: Path, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.h5"
    far.push(path)
    far.pull(other)
    with hs.VersionedFile(path, "r+") as file:
        commit(file, "mine", 5)
    with hs.VersionedFile(other, "r+") as file:
        commit(file, "theirs", 6, branch="side")
    before_swap(monkeypatch, lambda: far.push(other))
    taken = far.push(path, "main")
    assert (taken.branches, taken.diverged) == ({"main": "mine"}, {})
    assert {name: one.version for name, one in far.refs().branches.items()} == {"main": "mine", "side": "theirs"}
    assert far.pull(path).branches == {"side": "theirs"}
    far.pull(other)
    same(path, other)


def test_a_version_of_a_name_that_is_taken_there_is_refused(
    path: Path, tmp_path: Path, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.h5"
    far.push(path)
    far.pull(other)
    for one in (path, other):
        with hs.VersionedFile(one, "r+") as file:
            commit(file, "a4", len(one.name))
    before_swap(monkeypatch, lambda: far.push(other))
    with pytest.raises(UsageError, match=r"has a version 'a4' of .* rename one"):
        far.push(path)
    with pytest.raises(UsageError, match="another version 'a4'"):
        far.pull(path)
    assert far.refs().branches["main"].version == "a4"
    far.pull(other)


def test_a_store_that_cannot_compare_and_swap_is_noticed(
    path: Path, tmp_path: Path, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = obstore.put
    monkeypatch.setattr(obstore, "put", lambda *said, mode=None, **also: put(*said, **also))
    assert not far.push(path).is_guarded
    options = [f"--option={key}={value}" for key, value in far.options.items()]
    said = CliRunner().invoke(app, ["push", str(path), far.url, *options])
    assert said.exit_code == 0
    assert "cannot compare and swap" in said.stderr
    far.pull(tmp_path / "other.h5")
    same(path, tmp_path / "other.h5")


def test_an_answer_that_is_lost_does_not_matter(path: Path, far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    from obstore.exceptions import PreconditionError

    put = obstore.put

    def lossy(store: Any, key: str, *said: Any, **also: Any) -> Any:
        done = put(store, key, *said, **also)
        if key.endswith("/refs"):
            raise PreconditionError("the first attempt was stored, and its answer lost")
        return done

    monkeypatch.setattr(obstore, "put", lossy)
    taken = far.push(path)
    assert (taken.branches, len(taken.versions)) == (HEADS, 5)
    assert len(far.refs().bundles) == 1


# ------------------------------------------------------------------------------------------------------------- kills


def test_a_push_that_stops_anywhere_moves_nothing_and_the_next_goes_on(
    path: Path, tmp_path: Path, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(far_push, "BUNDLE_NBYTES", -1)  # each version is one
    far.push(path, "paper")
    before, put = far.get("refs"), obstore.put
    for last, is_done in [(number, is_done) for number in (1, 2, 3, 4, 5, 6, 3) for is_done in (False, True)]:
        keys: list[str] = []

        def stopping(store: Any, key: str, *said: Any, **also: Any) -> None:
            keys.append(key)  # noqa: B023
            if len(keys) < last or is_done:  # noqa: B023
                put(store, key, *said, **also)
            if len(keys) >= last:  # noqa: B023
                raise KeyboardInterrupt

        monkeypatch.setattr(obstore, "put", stopping)
        with suppress(KeyboardInterrupt):
            far.push(path)
        monkeypatch.setattr(obstore, "put", put)
        is_stopped = len(keys) >= last
        assert (far.get("refs") != before) == (keys[-1].endswith("/refs") and (is_done or not is_stopped))
        far.put("refs", before)
    kept = {key for key in far.objects() if key.startswith("bundles/")}
    assert len(kept) == 5
    assert far.push(path).branches == HEADS
    assert {key for key in far.objects() if key.startswith("bundles/")} == kept  # all were there
    far.pull(tmp_path / "other.h5")
    same(path, tmp_path / "other.h5")


def test_a_process_that_is_killed_leaves_what_was_there(path: Path, tmp_path: Path, far: Far) -> None:
    far.push(path)
    refs = far.get("refs")
    with hs.VersionedFile(path, "r+") as file:
        commit(file, "a4", 9)
    program = (
        "import obstore, os, sys, json, signal\n"
        "from hyperslab.versions import push\n"
        "put = obstore.put\n"
        "def killed(store, key, *said, **also):\n"
        "    put(store, key, *said, **also)\n"
        "    '/bundles/' in key and os.kill(os.getpid(), signal.SIGKILL)\n"
        "obstore.put = killed\n"
        "push(sys.argv[1], sys.argv[2], storage_options=json.loads(sys.argv[3]))\n"
    )
    room = tmp_path / "room"
    room.mkdir()
    said = [sys.executable, "-c", program, str(path), far.url, json.dumps(far.options)]
    ended = subprocess.run(said, env={**os.environ, "TMPDIR": str(room)}, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert far.get("refs") == refs
    assert len(list(room.iterdir())) == 1  # with the bundle that it has sent
    tempfile.tempdir, before = str(room), tempfile.tempdir
    try:
        assert far.push(path).branches == {"main": "a4"}
    finally:
        tempfile.tempdir = before
    assert not list(room.iterdir())
    assert len(far.objects()) == 4
    far.pull(tmp_path / "other.h5")
    same(path, tmp_path / "other.h5")


def test_a_pull_that_stops_goes_on(path: Path, tmp_path: Path, far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far_push, "BUNDLE_NBYTES", -1)  # each version is one
    far.push(path)
    other, fetch = tmp_path / "other.h5", BundleFolder.fetch
    for last in range(1, 6):
        count = [0]

        def stopping(self: BundleFolder, *said: Any, count: list[int] = count, last: int = last) -> None:
            count[0] += 1
            if count[0] == min(last, 2):
                raise RemoteError("the connection is gone")
            fetch(self, *said)

        monkeypatch.setattr(BundleFolder, "fetch", stopping)
        with pytest.raises(RemoteError):
            far.pull(other)
        with hs.VersionedFile(other) as file:
            assert len(file) == last - 1
            assert not file.refs.is_explicit
    monkeypatch.setattr(BundleFolder, "fetch", fetch)
    assert far.pull(other).branches == HEADS
    same(path, other)


# --------------------------------------------------------------------------------------------------- what is refused


def test_what_is_not_there_or_makes_no_sense_is_named(path: Path, tmp_path: Path, far: Far) -> None:
    other = tmp_path / "other.h5"
    with pytest.raises(NoSuchRemoteFile, match="no versions at s3://history/"):
        far.pull(other)
    assert not other.exists()
    with pytest.raises(UsageError, match="a URL and a URL"):
        push(far.url, far.url)
    with pytest.raises(UsageError, match="storage options are for URLs"):
        push(path, other, storage_options=far.options)
    with pytest.raises(KeyError, match="nothing"):
        far.push(path, "nothing")
    with pytest.raises(RemoteError, match="no such bucket"):
        push(path, "s3://nowhere-at-all/x", storage_options=far.options)
    with pytest.raises(UsageError, match="kee"):
        push(path, far.url, storage_options={**far.options, "kee": 1})


def test_another_file_with_versions_of_the_same_names_is_refused(path: Path, tmp_path: Path, far: Far) -> None:
    far.push(path)
    other = tmp_path / "other.h5"
    far.pull(other)
    with hs.VersionedFile(other, "r+") as file:
        file.modify_metadata("g/x", fillvalue=7.0)
        commit(file, "a4", 3)
    with pytest.raises(UsageError, match="g/x has other chunks"):
        far.push(other)
    with hs.VersionedFile(path, "r+") as file:
        commit(file, "a4", 3, timestamp=None)
    with h5py.File(path, "r+") as h5:
        hash_table = h5["_version_data/g/x/hash_table"]
        rows = hash_table[...]
        rows["hash"][:, 0] ^= 255
        hash_table[...] = rows
    with pytest.raises(DamagedFile, match="holds something else"):
        far.push(path)
    assert far.refs().branches["main"].version == "a3"


def test_bundles_and_refs_that_were_changed_are_refused(path: Path, tmp_path: Path, far: Far) -> None:
    far.push(path)
    other, refs = tmp_path / "other.h5", far.get("refs")
    (name,) = (key for key in far.objects() if key.startswith("bundles/"))
    stored = far.get(name)
    for content, said in ((stored[:-1] + b"x", "does not have the hash"), (stored[:-1], "bytes instead of")):
        far.put(name, content)
        with pytest.raises(DamagedFile, match=said):
            far.pull(other)
    far.client.delete_object(Bucket=BUCKET, Key=f"{far.name}/{name}")
    far.push(path)
    with pytest.raises(DamagedFile, match=r"is missing: .*; push the versions to another URL"):
        far.pull(other)
    far.put(name, stored)
    said = record_body(refs, 0, len(refs) - 8)
    target = said["branches"]["main"]
    hostile: list[Any] = [
        {"hyperslab_bundle": 99}, {"bundles": 3}, {"bundles": [{"sha256": "../../etc", "nbytes": 1, "versions": []}]},
        {"bundles": [{**said["bundles"][0], "nbytes": -1}]}, {"branches": []}, {"branches": {"main": ["a"]}},
        {"tags": {"x": 3}}, {"arrays": None}, {"checked_out": {}},
        {"branches": {"a/b": target}}, {"branches": {"main": ["nobody", target[1]]}},
    ]  # fmt: skip
    for one in hostile:
        far.put("refs", packed({**said, **one}))
        other.unlink(missing_ok=True)
        with suppress(HyperslabError):
            assert "main" not in far.pull(other).branches or one == {"checked_out": {}}
    for content in (b"", b"\0" * 30, refs[:-1], refs + refs, b"<html>"):
        far.put("refs", content)
        with pytest.raises((DamagedFile, Unsupported), match="refs is not as it was written"):
            far.pull(other)
        with pytest.raises((DamagedFile, Unsupported), match="refs is not as it was written"):
            far.push(path)
        assert far.get("refs") == content
    circle = [{**one, "parent": target} for one in said["bundles"][0]["versions"]]
    far.put("refs", packed({**said, "bundles": [{**said["bundles"][0], "versions": circle}]}))
    other.unlink(missing_ok=True)
    with pytest.raises(UsageError, match="lacks version"):
        far.pull(other)


def test_a_single_bundle_is_applied_from_a_url(path: Path, tmp_path: Path, far: Far) -> None:
    bundle(path, tmp_path / "x.bundle")
    far.put("x.bundle", (tmp_path / "x.bundle").read_bytes())
    options = [f"--option={key}={value}" for key, value in far.options.items()]
    done = CliRunner().invoke(app, ["apply", str(tmp_path / "other.h5"), f"{far.url}/x.bundle", "--json", *options])
    assert json.loads(done.stdout)["branches"] == HEADS
    same(path, tmp_path / "other.h5")
    assert apply(tmp_path / "other.h5", tmp_path / "x.bundle").versions == []


def test_the_commands_push_and_pull(path: Path, tmp_path: Path, far: Far) -> None:
    options = [f"--option={key}={value}" for key, value in far.options.items()]
    run = CliRunner()
    pushed = run.invoke(app, ["push", str(path), far.url, *options])
    assert (pushed.exit_code, "branch main is at a3" in pushed.stdout) == (0, True)
    other = str(tmp_path / "other.h5")
    assert json.loads(run.invoke(app, ["pull", other, far.url, "--json", *options]).stdout)["branches"] == HEADS


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_files_that_meet_at_a_url_come_to_the_same(tmp_path: Path, s3: str, data: st.DataObject) -> None:
    far, paths = Far(s3, os.urandom(8).hex()), [tmp_path / "one.h5", tmp_path / "two.h5"]
    for one in paths:
        one.unlink(missing_ok=True)
    with hs.VersionedFile(paths[0], "w") as file:
        commit(file, "v0", 0)
    far.push(paths[0])
    far.pull(paths[1])
    for number in range(1, data.draw(st.integers(3, 8))):
        one = paths[data.draw(st.integers(0, 1))]
        how = data.draw(st.sampled_from(["commit", "side", "meet", "delete", "repack"]))
        if how == "meet":
            meet(far, one, number)
            continue
        with hs.VersionedFile(one, "r+") as file:
            if how == "delete" and len(file) > 2:
                file.delete_versions(data.draw(st.sampled_from(file.versions[1:])))
            elif how == "repack":
                file.repack()
            else:
                commit(file, f"v{number}", number, branch="side" if how == "side" else None)
    for number, one in enumerate((*paths, paths[0])):
        meet(far, one, 100 + number)
    with hs.VersionedFile(paths[0]) as one, hs.VersionedFile(paths[1]) as two:
        heads = [{name: branch.version for name, branch in file.branches.items()} for file in (one, two)]
        assert heads[0] == heads[1]
        assert one.verify().is_whole
        assert two.verify().is_whole
        for name in {*heads[0].values()}:
            np.testing.assert_array_equal(one[name]["g/x"][...], two[name]["g/x"][...])


def meet(far: Far, path: Path, number: int) -> None:
    """Pull, merge what has versions of its own, and push."""
    taken = far.pull(path)
    with hs.VersionedFile(path, "r+") as file:
        for count, name in enumerate(taken.diverged):
            if "merge" in taken.diverged[name]:
                other = far.refs().branches[name].version
                file.merge(other, into=name, conflict="ours", name=f"m{number}-{count}")
    assert far.push(path).diverged == {}
