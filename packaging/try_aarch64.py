"""Try the wheel for aarch64 on another processor: `make wheel-aarch64` builds it, and this runs it under qemu-user.

Debian's Python for arm64 is unpacked into a folder, and pip installs the wheel, NumPy, h5py and pytest for that
platform beside it; nothing is installed on this machine. Then a sample of the tests runs there, compared with h5py.
What starts programs, preloads a library or measures the machine is not in the sample: qemu runs one program.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "target" / "aarch64"
QEMU = "qemu-aarch64-static"
DEBIAN = ["python3", "libpython3-stdlib", "libstdc++6", "libgomp1"]
PACKAGES = ["h5py", "zarr", "pyarrow", "numcodecs", "hdf5plugin", "pytest>=9", "pytest-timeout", "hypothesis"]
PLATFORMS = ["manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"]
SAMPLE = [
    "tests/core/test_geometry.py", "tests/core/test_arrow.py", "tests/engine/test_read.py", "tests/engine/test_plan.py",
    "tests/engine/test_hdf5_filters.py", "tests/engine/test_numcodecs_filters.py", "tests/engine/test_points.py",
    "tests/engine/test_zarr_values.py", "tests/h5/test_behaviour.py", "tests/archive/test_notebooks.py",
]  # fmt: skip
# These start Python, and qemu runs one program.
LEFT_OUT = [
    "--deselect=tests/h5/test_behaviour.py::test_h5py_need_not_be_there",
    "--deselect=tests/core/test_arrow.py::test_pandas_is_not_imported",
]


def system(place: Path) -> Path:
    """The root folder of a system for arm64 that has Python."""
    root = place / "root"
    if (root / "usr" / "bin" / "python3").exists():
        return root
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (place / folder).mkdir(parents=True, exist_ok=True)
    (place / "status").touch()  # nothing is installed there
    settings = {"APT::Architecture": "arm64", "APT::Architectures": "arm64", "Dir::State": place / "state",
                "Dir::State::status": place / "status", "Dir::Cache": place / "cache"}  # fmt: skip
    apt = ["apt-get", "-q", "-y", *(f"-o{name}={value}" for name, value in settings.items())]
    subprocess.run([*apt, "update"], check=True, stdout=subprocess.DEVNULL)
    fetch = [*apt, "--no-install-recommends", "--download-only", "install", *DEBIAN]
    subprocess.run(fetch, check=True, stdout=subprocess.DEVNULL)
    for package in sorted((place / "cache" / "archives").glob("*.deb")):
        subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)
    return root


def libraries(place: Path, wheel: Path) -> Path:
    """The folder with the wheel and what its tests import, for arm64."""
    site = place / "site"
    shutil.rmtree(site, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(site)]
    pip += ["--only-binary=:all:", "--implementation", "cp", "--python-version", "3.11"]
    pip += [word for platform in PLATFORMS for word in ("--platform", platform)]
    subprocess.run([*pip, str(wheel), *PACKAGES], check=True)
    return site


def python(root: Path, site: Path, *words: str) -> int:
    """Run Python for arm64, with what was installed for it. Returns its exit status."""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1",
                   "HOME": str(PLACE), "TMPDIR": os.environ.get("TMPDIR", "/tmp"), "LANG": "C.UTF-8"}  # fmt: skip
    return subprocess.run([QEMU, "-L", str(root), str(root / "usr/bin/python3.11"), *words], env=environment,
                          cwd=ROOT, check=False).returncode  # fmt: skip


def main() -> None:
    """Install the wheel for arm64, and run the sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel.absolute()
    if shutil.which(QEMU) is None:
        sys.exit(f"{QEMU} is not installed: apt-get install qemu-user-static")
    root, site = system(PLACE), libraries(PLACE, wheel)
    said = "import platform, hyperslab; print(platform.machine(), hyperslab.__version__, hyperslab.__file__)"
    sys.exit(
        python(root, site, "-c", said)
        or python(root, site, "-m", "pytest", "-q", "-p", "no:cacheprovider", *LEFT_OUT, *SAMPLE)
    )


if __name__ == "__main__":
    main()
