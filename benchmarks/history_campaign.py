"""Random histories of files with versions, killed and failing at any moment: is a version, tag or branch ever lost?

    python benchmarks/history_campaign.py [COUNT] [SEED] [RESULTS]

Each history does what people do, in random order: commits by hyperslab and by versioned-hdf5, on branches; tags,
branches, merges, deletions by both, expiry, import of files, push and pull, bundles, repack; other codecs by both, and
tables of hashes that versioned-hdf5 makes again. A forked process does the steps. In a step of ours it is killed at a
random write, or its disk fails there (EIO, ENOSPC, short writes), or nothing happens. Then every version must exist
that a step that returned had made, with the elements that it had, for us, for versioned-hdf5 and for h5py; branches and
tags must be where they were before or after the step, and the history goes on. Prints each history that loses
something, and how many steps ended in which way. RESULTS is a file, by default that in benchmarks/results, which is
written after each history, under the seed: a campaign of the same seed that was stopped goes on.
"""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from comparison import provenance
from versioned_hdf5 import VersionedHDF5File
from versioned_hdf5 import delete_versions as delete_theirs
from versioned_hdf5 import modify_metadata as modify_theirs

import hyperslab as hs
from hyperslab.errors import DamagedFile, Unsupported
from hyperslab.replacing import replace_with
from hyperslab.versions import apply, bundle, import_files, pull, push
from hyperslab.versions.commit import writing

RESULTS = Path(__file__).parent / "results" / "history_campaign.json"
SHAPE, CHUNKS = (60,), (7,)
STEPS = 9
State = dict[str, Any]


class Faulty:
    """The system's calls, of which one kills the process or fails."""

    def __init__(self, last: int, how: str) -> None:
        self._left, self._how = last, how

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments: self._call(name, arguments)

    def _call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        self._left -= 1
        call = getattr(os, name)
        if self._left:
            return call(*arguments)
        if name == "pwrite":  # a part of it is written in any case
            descriptor, data, offset = arguments
            count = os.pwrite(descriptor, bytes(data)[: len(data) // 2], offset)
            if self._how == "short":
                return count
        if self._how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._how == "short":
            return call(*arguments)
        number = errno.EIO if self._how == "EIO" else errno.ENOSPC
        raise OSError(number, os.strerror(number))


def state_of(path: Path) -> State:
    """What a file holds, as we read it: versions with their elements, branches and tags."""
    nothing: State = {"versions": {}, "branches": {}, "tags": {}}
    if not path.exists() or not path.stat().st_size:  # its creation was cut short
        return nothing
    try:
        file = hs.VersionedFile(path)
    except (Unsupported, DamagedFile):  # it is lost: `lost` says so if it had versions
        return nothing
    with file:
        versions = {name: file[name]["x"][...] for name in file.versions}
        branches = {name: one.version for name, one in file.branches.items()}
        tags = {name: one.version for name, one in file.tags.items()}
        return {"versions": versions, "branches": branches, "tags": tags}


def lost(path: Path, before: State, after: State, *, verify: bool = True) -> str | None:
    """What a file lost by a step from one state to another, which may have been cut short; None if nothing."""
    found = state_of(path)
    known = before["versions"] | after["versions"]
    if missing := (before["versions"].keys() & after["versions"].keys()) - found["versions"].keys():
        return f"versions {sorted(missing)} are gone"
    for name, elements in found["versions"].items():
        if name in known and not np.array_equal(known[name], elements):
            return f"version {name} has other elements"
    for kind in ("branches", "tags"):
        for name, version in found[kind].items():
            if version not in (before[kind].get(name), after[kind].get(name)):
                return f"{kind} {name} is at {version}, not at {before[kind].get(name)} or {after[kind].get(name)}"
        if gone := (before[kind].keys() & after[kind].keys()) - found[kind].keys():
            return f"{kind} {sorted(gone)} are gone"
    return seen_by_others(path, found, verify=verify) if found["versions"] else None


def seen_by_others(path: Path, found: State, *, verify: bool) -> str | None:
    """What others do not see as we do; None if nothing."""
    if verify:
        with hs.VersionedFile(path) as file:
            checked = file.verify()
            if not checked.is_whole:
                return f"damage: {checked.damages[0]}"
    with h5py.File(path) as h5:
        theirs = VersionedHDF5File(h5)
        for name, elements in found["versions"].items():
            if not np.array_equal(theirs[name]["x"][()], elements):
                return f"versioned-hdf5 reads something else in {name}"
            if not np.array_equal(h5[f"_version_data/versions/{name}/x"][()], elements):
                return f"h5py reads something else in {name}"
    return None


class History:
    """A history in a folder: `one.h5`, and `two.h5` that it exchanges versions with."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng, self.number = folder, random.Random(seed), 0
        self.one, self.two = folder / "one.h5", folder / "two.h5"
        with hs.VersionedFile(self.one, "w") as file, file.stage_version("v0") as version:
            version.create_dataset("x", data=np.arange(SHAPE[0], dtype="f4"), chunks=CHUNKS, compression="gzip")

    def step(self) -> tuple[str, bool, Callable[[], None]]:
        """The next step: its name, whether it is ours, so that it may be killed, and what does it."""
        self.number += 1
        names = [
            "ours",
            "ours",
            "theirs",
            "tag",
            "merge",
            "delete",
            "delete theirs",
            "expire",
            "import",
            "push",
            "pull",
        ]
        more = ["bundle", "repack", "branch", "checkout", "codecs", "codecs theirs", "rebuild theirs"]
        name = self.rng.choice([*names, *more])
        seed = self.rng.random()
        return name, "theirs" not in name, lambda: self._do(name, random.Random(seed))

    def _do(self, name: str, rng: random.Random) -> None:
        version, at, value = f"v{self.number}", rng.randrange(SHAPE[0]), rng.randrange(1000)
        if name == "theirs":
            with h5py.File(self.one, "r+") as h5, VersionedHDF5File(h5).stage_version(version) as staged:
                staged["x"][at] = value
        elif name == "delete theirs":
            with hs.VersionedFile(self.one) as file:
                chosen = self._deletable(file, rng)
            with h5py.File(self.one, "r+") as h5:
                delete_theirs(h5, chosen)
        elif name == "codecs theirs":
            with h5py.File(self.one, "r+") as h5:
                modify_theirs(h5, "x", compression="gzip", compression_opts=rng.randint(1, 9))
        elif name == "rebuild theirs":
            with h5py.File(self.one, "r+") as h5:
                VersionedHDF5File(h5).rebuild_hashtables()
        elif name == "import":
            with h5py.File(self.folder / f"{version}.h5", "w") as h5:
                h5.create_dataset("x", data=np.arange(SHAPE[0], dtype="f4") + at % 2, chunks=CHUNKS, compression="gzip")
            import_files([self.folder / f"{version}.h5"], self.one, verify=False)
        elif name == "push":
            push(self.one, self.two)
        elif name == "pull" and self.two.exists():
            pull(self.one, self.two)
        elif name == "bundle":
            bundle(self.one, self.folder / "x.bundle")
            apply(self.two, self.folder / "x.bundle")
        else:
            with hs.VersionedFile(self.one, "r+") as file:
                self._change(file, name, version, (at, value), rng)

    def _change(
        self, file: hs.VersionedFile, name: str, version: str, edit: tuple[int, int], rng: random.Random
    ) -> None:
        branches = [one.name for one in file.branches.values() if one.version is not None]
        if name == "tag":
            file.create_tag(f"t{self.number}", rng.choice(file.versions))
        elif name == "merge" and len(branches) > 1:
            one, other = rng.sample(branches, 2)
            file.merge(other, into=one, conflict="ours", name=version)
        elif name == "delete":
            file.delete_versions(self._deletable(file, rng), repack=rng.random() < 0.5)
        elif name == "expire":
            file.expire(keep_last=rng.randint(1, 4))
        elif name == "repack":
            file.repack()
        elif name == "branch":
            file.create_branch(f"b{self.number}", rng.choice(file.versions))
        elif name == "checkout" and branches:
            file.checkout(rng.choice(branches))
        elif name == "codecs":
            file.modify_metadata("x", compression="gzip", compression_opts=rng.randint(1, 9))
        else:
            with file.stage_version(version, branch=rng.choice(["side", *branches])) as staged:
                staged["x"][edit[0]] = edit[1]

    def _deletable(self, file: hs.VersionedFile, rng: random.Random) -> list[str]:
        tagged = {tag.version for tag in file.tags.values()}
        free = [name for name in file.versions if name not in tagged and name != file.current_version]
        return [rng.choice(free)] if free else []


REFUSED = (ValueError, KeyError, OSError)  # an empty deletion, another version of that name: the file stays as it is


def in_a_fork(work: Callable[[], None], system: Faulty | None) -> int:
    """Do something in a forked process. Returns its exit status; negative if it was killed."""
    child = os.fork()
    if not child:
        status = 1
        try:
            if system is not None:
                writing.SYSTEM = system  # type: ignore[assignment]
            work()
            status = 0
        except REFUSED:
            status = 2
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(folder: Path, seed: int, counts: Counter[str]) -> str | None:
    """One history. Returns what was lost."""
    history, rng = History(folder, seed), random.Random(seed + 1)
    for _ in range(STEPS):
        name, is_ours, work = history.step()
        files = (history.one, history.two)
        before = [state_of(path) for path in files]
        how = rng.choice(["kill", "EIO", "ENOSPC", "short", "nothing"]) if is_ours else "nothing"
        system = None if how == "nothing" else Faulty(rng.choice([1, 2, 3, 5, 8, 13, 21, 34, 55]), how)
        kept = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        status = in_a_fork(work, system)
        counts[f"{name}: {how}: {'killed' if status < 0 else ('done', 'failed', 'refused')[status]}"] += 1
        found = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        put_back(folder, kept)
        if status == 1 or in_a_fork(work, None) == 1:
            return f"step {history.number} ({name}, {how}) raised an error that it should not"
        after = [state_of(path) for path in files]
        put_back(folder, found)
        for path, old, new in zip(files, before, after, strict=True):
            said = lost(path, old, new, verify=how != "nothing") if path.exists() else None
            if said is not None:
                return f"step {history.number} ({name}, {how}) in {path.name}: {said}"
    return None


def put_back(folder: Path, files: dict[Path, bytes]) -> None:
    """Make a folder what it was."""
    for path in folder.iterdir():
        path.unlink()
    for path, stored in files.items():
        path.write_bytes(stored)


def summary(counts: Counter[str]) -> dict[str, int]:
    """How many steps ended in which way, by what was done to them."""
    found = Counter[str]()
    for key, count in counts.items():
        _, how, ended = key.split(": ")
        found[f"{how}: {ended}"] += count
    return dict(sorted(found.items()))


def main() -> int:
    """Run the histories. Returns how many lost something."""
    count, seed, results = (sys.argv[1:] + ["1000", "1", str(RESULTS)][len(sys.argv) - 1 :])[:3]
    path = Path(results)
    campaigns: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    known = campaigns.get(seed, {"histories": 0, "lost": [], "ended": {}})
    counts, lost_by = Counter[str](known["ended"]), list(known["lost"])
    for number in range(known["histories"], int(count)):
        one = int(seed) * 1_000_000 + number
        with tempfile.TemporaryDirectory(prefix="hyperslab-history-") as folder:
            try:
                said = run(Path(folder), one, counts)
            except Exception as error:  # a file that cannot be opened any more
                said = f"{type(error).__name__}: {error}"
        if said is not None:
            lost_by.append(f"history {one}: {said}")
            print(lost_by[-1], flush=True)
        ended = {"ended": dict(sorted(counts.items())), "summary": summary(counts)}
        campaigns[seed] = {"histories": number + 1, "steps": STEPS, "lost": lost_by, **ended, **provenance()}
        replace_with(path, json.dumps(campaigns, indent=1) + "\n")
    print(f"{count} histories of {STEPS} steps, {len(lost_by)} lost something; {summary(counts)}")
    return len(lost_by)


if __name__ == "__main__":
    raise SystemExit(main() > 0)
