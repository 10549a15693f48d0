"""Build what users install, into dist/: `make wheel`.

The wheel runs with every Python from 3.11 on (abi3) and every Linux whose glibc is 2.28 or newer (manylinux_2_28):
zig links against that version, whatever this machine has. The tools are installed in an environment of their own.
`--machine aarch64` builds for another processor than this machine's; `try_aarch64.py` tries what it built.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import notices
from notices import target_of

ROOT = notices.ROOT
GLIBC = "2.28"
MACHINES = ("x86_64", "aarch64")
PROCESSORS = {b"\x3e\x00": "x86_64", b"\xb7\x00": "aarch64"}  # in bytes 18 and 19 of an ELF file
# The assembler of this zig does not know the SHA-3 instructions of ARM, and its successors stumble over AVX-512.
WITHOUT_SHA3 = {"aarch64": "-DLIBDEFLATE_ASSEMBLER_DOES_NOT_SUPPORT_SHA3"}
TOOLS = ["maturin>=1.7,<2", "ziglang==0.13.*", "cargo-zigbuild>=0.19", "auditwheel>=6.4", "abi3audit>=0.0.20"]
PACKAGE = ROOT / "python" / "hyperslab"
PAGE = ROOT / "hyperslab._core.data" / "data" / "share" / "man" / "man1" / "hyperslab.1"
SHIPPED = ("hyperslab/py.typed", "hyperslab/NOTICES.txt", "hyperslab/_core.abi3.so",
           "hyperslab/libhyperslab_preload.so", "share/man/man1/hyperslab.1", "licenses/LICENSE")  # fmt: skip


def tools() -> Path:
    """The folder with the programs that build, made once for each list of them."""
    folder = ROOT / "target" / "wheel-tools"
    done = folder / "done"
    if not done.exists() or done.read_text() != repr(TOOLS):
        venv.create(folder, clear=True, with_pip=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *TOOLS], check=True)
        done.write_text(repr(TOOLS))
    return folder / "bin"


def generate(programs: Path, machine: str) -> None:
    """The files of the wheel for a processor that are made from others."""
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-c", "from hyperslab.cli.manual import manual; print(manual(), end='')"]
    PAGE.write_text(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
    (zig,) = programs.parent.glob("lib/python*/site-packages/ziglang")
    (PACKAGE / "NOTICES.txt").write_text(notices.notices(machine, zig))


def linker(programs: Path, machine: str) -> dict[str, str]:
    """One linker and C compiler for both libraries.

    cargo-zigbuild and maturin would each use one of their own, and if the linker has another path, cargo compiles
    everything again.
    """
    made = {"cc": f"-g -fno-sanitize=all -target {machine}-linux-gnu.{GLIBC}", "ar": ""}
    for name, words in made.items():
        script = programs / f"zig-{name}-{machine}"
        script.write_text(f'#!/bin/sh\nexec "{programs}/cargo-zigbuild" zig {name} -- {words} "$@"\n')
        script.chmod(0o755)
    below = target_of(machine).replace("-", "_")
    cc, ar = (str(programs / f"zig-{name}-{machine}") for name in made)
    return {f"CARGO_TARGET_{below.upper()}_LINKER": cc, f"CC_{below}": cc, f"AR_{below}": ar}


def flags(machine: str) -> dict[str, str]:
    """Settings of the compilers: no symbols that only a debugger reads, and no path of this machine."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    sources = (home / "registry" / "src").iterdir()  # cargo has fetched them for the notices
    renamed = [(Path.home(), "home"), (home, "cargo"), (ROOT, "hyperslab"), *((one, "crates") for one in sources)]
    rust = [f"--remap-path-prefix={path}={name}" for path, name in renamed]  # of several that fit, the last is taken
    c = [f"-ffile-prefix-map={path}={name}" for path, name in renamed]
    variable = f"CFLAGS_{target_of(machine).replace('-', '_')}"
    return {
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join([*os.environ.get("RUSTFLAGS", "").split(), *rust]),
        variable: " ".join([os.environ.get(variable, ""), *c, WITHOUT_SHA3.get(machine, "")]).strip(),
        "CARGO_PROFILE_RELEASE_STRIP": "symbols",
    }


def build(out: Path, programs: Path, machine: str) -> Path:
    """The wheel for a processor, and the sdist beside it if the processor is this machine's."""
    tools_first = f"{programs}:{os.environ['PATH']}"
    environment = {**os.environ, **flags(machine), **linker(programs, machine), "PATH": tools_first}
    sources = [] if is_cross(machine) else [*out.glob("hyperslab-*.tar.gz")]
    for old in [*out.glob(f"hyperslab-*_{machine}.whl"), *sources]:
        old.unlink()
    maturin = [str(programs / "maturin")]
    command = [*maturin, "build", "--release", "--locked", "--zig", "--target", target_of(machine)]
    command += ["--compatibility", f"manylinux_{GLIBC.replace('.', '_')}", "--out", str(out)]
    with preloaded_library(environment, machine):
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
    if not is_cross(machine):
        subprocess.run([*maturin, "sdist", "--out", str(out)], cwd=ROOT, env=environment, check=True)
    (wheel,) = out.glob(f"*_{machine}.whl")
    return wheel


@contextmanager
def preloaded_library(environment: dict[str, str], machine: str) -> Iterator[None]:
    """While the wheel is packed, the package has the library that `run` preloads for that processor.

    That of another processor does not stay: programs here preload what the package has.
    """
    cargo = ["cargo", "zigbuild", "--release", "--locked", "--package", "hyperslab-preload"]
    subprocess.run([*cargo, "--target", f"{target_of(machine)}.{GLIBC}"], cwd=ROOT, env=environment, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    place = PACKAGE / "libhyperslab_preload.so"
    kept = ROOT / "target" / f"{place.name}.kept"  # not in the package, of which everything would be packed
    if is_cross(machine) and place.exists():
        shutil.copy(place, kept)
    beside = place.with_name("libhyperslab_preload.so.new")
    shutil.copy(target / target_of(machine) / "release" / place.name, beside)
    beside.replace(place)  # renamed, because running programs may have it loaded
    try:
        yield
    finally:
        if kept.exists():
            shutil.move(kept, place)
        elif is_cross(machine):
            place.unlink()


def is_cross(machine: str) -> bool:
    """Whether a wheel for this processor cannot run here by itself."""
    return machine != platform.machine()


def faults(wheel: Path) -> list[str]:
    """What the wheel lacks or has too much, paths of this machine, and libraries for another processor."""
    found = [] if "abi3-manylinux" in wheel.name else [f"its name is {wheel.name}"]
    machine = next((one for one in MACHINES if wheel.stem.endswith(one)), None)
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
            if name.endswith(".so") and (built := PROCESSORS.get(content[18:20])) not in (None, machine):
                found.append(f"{name} is for {built}")
    return found


def judged(wheel: Path, programs: Path) -> list[str]:
    """What two judges say against the wheel: of the systems that it runs on, and of the Pythons."""
    show = subprocess.run([programs / "auditwheel", "show", wheel], capture_output=True, text=True)
    found = oldest_system(show.stdout + show.stderr)
    pythons = subprocess.run([programs / "abi3audit", "--strict", "--report", wheel], capture_output=True, text=True)
    return found + ([f"abi3audit: {(pythons.stdout + pythons.stderr).strip()}"] if pythons.returncode else [])


def oldest_system(said: str) -> list[str]:
    """What is wrong with the platform that auditwheel names."""
    named = re.search(r'platform\s+tag:\s+"manylinux_2_(\d+)_', said)
    if named and int(named[1]) <= int(GLIBC.split(".")[1]):
        return []
    return [f"auditwheel: {' '.join(said.split())}"]


def main() -> None:
    """Build, and end with an error if the wheel is not what it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--machine", choices=MACHINES, default=platform.machine())
    asked = parser.parse_args()
    out: Path = asked.out
    programs = tools()
    generate(programs, asked.machine)
    if is_cross(asked.machine):
        subprocess.run(["rustup", "target", "add", target_of(asked.machine)], check=True)
    wheel = build(out, programs, asked.machine)
    wrong = [*faults(wheel), *judged(wheel, programs)]
    for path in sorted(out.iterdir()):
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
    if wrong:
        sys.exit("\n".join(f"{wheel.name}: {fault}" for fault in wrong))


if __name__ == "__main__":
    main()
