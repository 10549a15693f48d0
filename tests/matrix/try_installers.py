"""Installs the wheel as people do, each time into an empty environment and an empty home: `make try-wheel`.

`python tests/matrix/try_installers.py dist/hyperslab-....whl` tries pip, uv, pipx and uvx, and runs two commands after
each. uv and pipx come from the package index, into a folder of their own. What fails is printed, and the status is 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "cli"))
import plain_install  # noqa: E402

TOOLS = HERE.parents[1] / "target" / "tools" / "installers"
COMMANDS = (["--version"], ["read", "a.h5", "temp", "0,:3"])
SAID = ("hyperslab 0", "[0. 1. 2.]")
Environment = dict[str, str]


def tools() -> Path:
    """The folder with uv, uvx and pipx, made once."""
    programs = TOOLS / "bin"
    if not (programs / "pipx").exists():
        venv.create(TOOLS, clear=True, with_pip=True)
        subprocess.run([str(programs / "python"), "-m", "pip", "install", "--quiet", "uv", "pipx"], check=True)
    return programs


def by_pip(wheel: Path, place: Path, _: Environment) -> list[str]:
    """A virtual environment."""
    venv.create(place, with_pip=True)
    subprocess.run([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", str(wheel)], check=True)
    return [str(place / "bin" / "hyperslab")]


def by_uv(wheel: Path, place: Path, around: Environment) -> list[str]:
    """An environment of uv."""
    uv = str(tools() / "uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(place)], check=True, env=around)
    install = [uv, "pip", "install", "--quiet", "--python", str(place / "bin" / "python"), str(wheel)]
    subprocess.run(install, check=True, env=around)
    return [str(place / "bin" / "hyperslab")]


def by_pipx(wheel: Path, place: Path, around: Environment) -> list[str]:
    """A program of pipx."""
    around = around | {"PIPX_HOME": str(place), "PIPX_BIN_DIR": str(place / "bin"), "PIPX_MAN_DIR": str(place / "man")}
    pipx = [str(tools() / "pipx"), "install", "--quiet", "--python", sys.executable, str(wheel)]
    subprocess.run(pipx, check=True, env=around)
    return [str(place / "bin" / "hyperslab")]


def by_uvx(wheel: Path, _: Path, __: Environment) -> list[str]:
    """Nothing is installed: uvx makes an environment for each call, or takes it from its cache."""
    return [str(tools() / "uvx"), "--quiet", "--python", sys.executable, "--from", str(wheel), "hyperslab"]


INSTALLERS: dict[str, Callable[[Path, Path, Environment], list[str]]] = {
    "pip": by_pip, "uv": by_uv, "pipx": by_pipx, "uvx": by_uvx,
}  # fmt: skip


def tried(name: str, wheel: Path, folder: Path) -> list[str]:
    """What is wrong after one way to install."""
    work = folder / "files"
    work.mkdir(parents=True)
    plain_install.make_files(work)
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "HYPERSLAB", "VIRTUAL_ENV"))
    }
    around = kept | {"HOME": str(folder), "UV_PYTHON_DOWNLOADS": "never", "UV_CACHE_DIR": str(folder / "cache")}
    if certificates := os.environ.get("PIP_CERT"):
        around["SSL_CERT_FILE"] = certificates
    try:
        program = INSTALLERS[name](wheel, folder / "environment", around)
    except subprocess.CalledProcessError as error:
        return [f"{name}: {error}"]
    wrong = []
    for words, said in zip(COMMANDS, SAID, strict=True):
        done = subprocess.run([*program, *words], cwd=work, env=around, capture_output=True, text=True)
        if done.returncode or said not in done.stdout:
            wrong.append(
                f"{name}: hyperslab {' '.join(words)}: {done.returncode}, {(done.stdout + done.stderr)[-500:]}"
            )
    return wrong


def main() -> None:
    """Try each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel.absolute()
    wrong = []
    for name in INSTALLERS:
        with tempfile.TemporaryDirectory() as folder:
            found = tried(name, wheel, Path(folder))
        print(f"{name}: {'failed' if found else f'{len(COMMANDS)} commands work'}", flush=True)
        wrong += found
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
