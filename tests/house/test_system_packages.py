"""`install-system-packages.sh`: waits for apt's locks, and says that all is there only when it is.

A real apt and a real dpkg, with a root folder, lists, locks and a repository of their own, beside the machine's.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "install-system-packages.sh"
PACKAGE = "hyperslab-tests-nothing"
HELD_SECONDS = 3
LOCKS = ("var/lib/apt/lists/lock", "var/cache/apt/archives/lock", "var/lib/dpkg/lock-frontend", "var/lib/dpkg/lock")


@pytest.fixture
def apt(tmp_path: Path) -> dict[str, str]:
    """The environment in which apt and dpkg work in a folder of their own, with one empty package to install."""
    if os.geteuid() != 0:
        pytest.skip("installing packages needs root")
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    root, repository = tmp_path / "root", tmp_path / "repository"
    for folder in ("etc/apt", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log/apt"):
        (root / folder).mkdir(parents=True)
    for folder in ("info", "updates", "triggers"):
        (root / "var/lib/dpkg" / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    control = tmp_path / "package" / "DEBIAN" / "control"
    control.parent.mkdir(parents=True)
    facts = f"Package: {PACKAGE}\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: nothing\n"
    control.write_text(facts)
    repository.mkdir()
    made = repository / "nothing.deb"
    subprocess.run(["dpkg-deb", "--build", tmp_path / "package", made], check=True, capture_output=True)
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    place = f"Filename: ./{made.name}\nSize: {made.stat().st_size}\nSHA256: {digest}\n"
    (repository / "Packages").write_text(facts + place)
    (root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] file:{repository} ./\n")
    settings = tmp_path / "apt.conf"
    settings.write_text(
        f'Dir "{root}";\nDir::State::status "{root}/var/lib/dpkg/status";\nAPT::Sandbox::User "root";\n'
        f'DPkg::Options {{ "--root={root}"; "--force-script-chrootless"; "--log={root}/dpkg.log"; }};\n'
        "DPkg::Pre-Install-Pkgs { };\nDPkg::Post-Invoke { };\nAPT::Update::Post-Invoke { };\n"
    )
    return {**os.environ, "APT_CONFIG": str(settings), "DPKG_ADMINDIR": str(root / "var/lib/dpkg"), "LC_ALL": "C"}


def run(environment: dict[str, str], folder: Path, packages: str = PACKAGE) -> tuple[str, bool]:
    (folder / "list").write_text(packages)
    stamp = folder / "stamp"
    command = ["sh", str(SCRIPT), str(folder / "list"), str(stamp)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    return done.stdout, stamp.exists()


@pytest.mark.parametrize("lock", LOCKS)
def test_waits_for_a_lock_that_is_held(apt: dict[str, str], tmp_path: Path, lock: str) -> None:
    path = tmp_path / "root" / lock
    with path.open("w") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        (tmp_path / "list").write_text(PACKAGE)
        command = ["sh", str(SCRIPT), str(tmp_path / "list"), str(tmp_path / "stamp")]
        running = subprocess.Popen(command, env=apt, stdout=subprocess.PIPE, text=True)
        time.sleep(HELD_SECONDS)
        assert running.poll() is None, running.communicate()[0]
    said = running.communicate(timeout=250)[0]
    assert "could not" not in said, said
    assert (tmp_path / "stamp").exists()


def test_the_stamp_is_made_when_all_is_there(apt: dict[str, str], tmp_path: Path) -> None:
    said, is_stamped = run(apt, tmp_path, f"{PACKAGE}\nno-such-package\n")
    assert "could not install no-such-package" in said
    assert "still missing: no-such-package" in said
    assert not is_stamped
    said, is_stamped = run(apt, tmp_path)
    assert (said, is_stamped) == ("", True), "the one package is there since the first run"


def test_a_lock_that_stays_is_no_stamp(apt: dict[str, str], tmp_path: Path) -> None:
    with (tmp_path / "root" / LOCKS[2]).open("w") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        said, is_stamped = run({**apt, "APT_WAIT_SECONDS": "1"}, tmp_path)
    assert f"still missing: {PACKAGE}" in said
    assert not is_stamped
