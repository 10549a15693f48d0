"""Build what users install, into dist/: `make wheel`.

The wheel runs with every Python from 3.11 on (abi3) and every Linux whose glibc is 2.28 or newer (manylinux_2_28):
zig links against that version, whatever this machine has. The tools are installed in an environment of their own.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = "x86_64-unknown-linux-gnu"
GLIBC = "2.28"
TOOLS = ["maturin>=1.7,<2", "ziglang==0.13.*", "cargo-zigbuild>=0.19"]
PACKAGE = ROOT / "python" / "hyperslab"
PAGE = ROOT / "hyperslab.data" / "data" / "share" / "man" / "man1" / "hyperslab.1"
SHIPPED = ("hyperslab/py.typed", "hyperslab/NOTICES.txt", "hyperslab/_core.abi3.so",
           "hyperslab/libhyperslab_preload.so", "share/man/man1/hyperslab.1", "licenses/LICENSE")  # fmt: skip


def tools() -> Path:
    """The folder with the programs that build, made once."""
    folder = ROOT / "target" / "wheel-tools"
    if not (folder / "done").exists():
        venv.create(folder, clear=True, with_pip=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *TOOLS], check=True)
        (folder / "done").touch()
    return folder / "bin"


def generate() -> None:
    """The files of the wheel that are made from others."""
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-c", "from hyperslab.cli.manual import manual; print(manual(), end='')"]
    PAGE.write_text(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
    notices = [sys.executable, str(ROOT / "packaging" / "notices.py"), str(PACKAGE / "NOTICES.txt")]
    subprocess.run(notices, check=True)


def build(out: Path) -> Path:
    """The wheel, and the sdist beside it."""
    programs = tools()
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    cargo = ["cargo", "zigbuild", "--release", "--locked", "--package", "hyperslab-preload"]
    subprocess.run([*cargo, "--target", f"{TARGET}.{GLIBC}"], cwd=ROOT, env=environment, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    beside = PACKAGE / "libhyperslab_preload.so.new"
    shutil.copy(target / TARGET / "release" / "libhyperslab_preload.so", beside)
    beside.replace(PACKAGE / "libhyperslab_preload.so")  # renamed, because running programs may have it loaded
    shutil.rmtree(out, ignore_errors=True)
    maturin = [str(programs / "maturin")]
    command = [*maturin, "build", "--release", "--locked", "--zig", "--target", TARGET]
    command += ["--compatibility", f"manylinux_{GLIBC.replace('.', '_')}", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    subprocess.run([*maturin, "sdist", "--out", str(out)], cwd=ROOT, env=environment, check=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def faults(wheel: Path) -> list[str]:
    """What the wheel lacks, and symbols of a newer glibc than it promises."""
    found = []
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        found += [f"{wanted} is not in it" for wanted in SHIPPED if not any(name.endswith(wanted) for name in names)]
        for name in (name for name in names if name.endswith(".so")):
            asked = re.findall(rb"GLIBC_([0-9.]+)", archive.read(name))
            newest = max((tuple(map(int, one.split(b"."))) for one in asked), default=(0,))
            if newest > tuple(map(int, GLIBC.split("."))):
                found.append(f"{name} needs glibc {'.'.join(map(str, newest))}")
    if "abi3-manylinux" not in wheel.name:
        found.append(f"its name is {wheel.name}")
    return found


def main() -> None:
    """Build, and end with an error if the wheel is not what it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    out = parser.parse_args().out
    generate()
    wheel = build(out)
    wrong = faults(wheel)
    for path in sorted(out.iterdir()):
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
    if wrong:
        sys.exit("\n".join(f"{wheel.name}: {fault}" for fault in wrong))


if __name__ == "__main__":
    main()
