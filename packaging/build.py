"""Build what users install, into dist/: `make wheel`.

The wheel runs with every Python from 3.11 on (abi3) and every Linux whose glibc is 2.28 or newer (manylinux_2_28):
zig links against that version, whatever this machine has. The tools are installed in an environment of their own.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = f"{platform.machine()}-unknown-linux-gnu"
GLIBC = "2.28"
TOOLS = ["maturin>=1.7,<2", "ziglang==0.13.*", "cargo-zigbuild>=0.19"]
PACKAGE = ROOT / "python" / "hyperslab"
PAGE = ROOT / "hyperslab._core.data" / "data" / "share" / "man" / "man1" / "hyperslab.1"
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


def generate(programs: Path) -> None:
    """The files of the wheel that are made from others."""
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-c", "from hyperslab.cli.manual import manual; print(manual(), end='')"]
    PAGE.write_text(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
    (zig,) = programs.parent.glob("lib/python*/site-packages/ziglang")
    notices = [sys.executable, str(ROOT / "packaging" / "notices.py"), str(PACKAGE / "NOTICES.txt"), str(zig)]
    subprocess.run(notices, check=True)


def linker(programs: Path) -> dict[str, str]:
    """One linker and C compiler for both libraries.

    cargo-zigbuild and maturin would each use one of their own, and if the linker has another path, cargo compiles
    everything again.
    """
    made = {"cc": f"-g -fno-sanitize=all -target {platform.machine()}-linux-gnu.{GLIBC}", "ar": ""}
    for name, words in made.items():
        script = programs / f"zig-{name}"
        script.write_text(f'#!/bin/sh\nexec "{programs}/cargo-zigbuild" zig {name} -- {words} "$@"\n')
        script.chmod(0o755)
    below = TARGET.replace("-", "_")
    cc, ar = str(programs / "zig-cc"), str(programs / "zig-ar")
    return {f"CARGO_TARGET_{below.upper()}_LINKER": cc, f"CC_{below}": cc, f"AR_{below}": ar}


def flags() -> dict[str, str]:
    """Settings of the compilers: no symbols that only a debugger reads, and no path of this machine."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    sources = (home / "registry" / "src").iterdir()  # cargo has fetched them for the notices
    renamed = [(Path.home(), "home"), (home, "cargo"), (ROOT, "hyperslab"), *((one, "crates") for one in sources)]
    rust = [f"--remap-path-prefix={path}={name}" for path, name in renamed]  # of several that fit, the last is taken
    c = [f"-ffile-prefix-map={path}={name}" for path, name in renamed]
    variable = f"CFLAGS_{TARGET.replace('-', '_')}"
    return {
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join([*os.environ.get("RUSTFLAGS", "").split(), *rust]),
        variable: " ".join([os.environ.get(variable, ""), *c]).strip(),
        "CARGO_PROFILE_RELEASE_STRIP": "symbols",
    }


def build(out: Path, programs: Path) -> Path:
    """The wheel, and the sdist beside it."""
    environment = {**os.environ, **flags(), **linker(programs), "PATH": f"{programs}:{os.environ['PATH']}"}
    cargo = ["cargo", "zigbuild", "--release", "--locked", "--package", "hyperslab-preload"]
    subprocess.run([*cargo, "--target", f"{TARGET}.{GLIBC}"], cwd=ROOT, env=environment, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    beside = PACKAGE / "libhyperslab_preload.so.new"
    shutil.copy(target / TARGET / "release" / "libhyperslab_preload.so", beside)
    beside.replace(PACKAGE / "libhyperslab_preload.so")  # renamed, because running programs may have it loaded
    for old in [*out.glob("hyperslab-*.whl"), *out.glob("hyperslab-*.tar.gz")]:
        old.unlink()
    maturin = [str(programs / "maturin")]
    command = [*maturin, "build", "--release", "--locked", "--zig", "--target", TARGET]
    command += ["--compatibility", f"manylinux_{GLIBC.replace('.', '_')}", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    subprocess.run([*maturin, "sdist", "--out", str(out)], cwd=ROOT, env=environment, check=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def faults(wheel: Path) -> list[str]:
    """What the wheel lacks or has too much, paths of this machine, and symbols of a newer glibc than it promises."""
    found = [] if "abi3-manylinux" in wheel.name else [f"its name is {wheel.name}"]
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        found += [f"{wanted} is not in it" for wanted in SHIPPED if not any(name.endswith(wanted) for name in names)]
        found += [
            f"{name} is in it"
            for name in names
            if not re.match(r"hyperslab/|hyperslab-[\d.]+\.(dist-info|data)/", name)
        ]
        for name in names:
            content = archive.read(name)
            found += [f"{name} contains {path}" for path in (ROOT, Path.home()) if f"{path}/".encode() in content]
            asked = re.findall(rb"GLIBC_([0-9.]+)", content) if name.endswith(".so") else []
            newest = max((tuple(map(int, one.split(b"."))) for one in asked), default=(0,))
            if newest > tuple(map(int, GLIBC.split("."))):
                found.append(f"{name} needs glibc {'.'.join(map(str, newest))}")
    return found


def main() -> None:
    """Build, and end with an error if the wheel is not what it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    out = parser.parse_args().out
    programs = tools()
    generate(programs)
    wheel = build(out, programs)
    wrong = faults(wheel)
    for path in sorted(out.iterdir()):
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
    if wrong:
        sys.exit("\n".join(f"{wheel.name}: {fault}" for fault in wrong))


if __name__ == "__main__":
    main()
