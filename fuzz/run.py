"""Fuzz every target in turn: build, make seeds, run; print a table; fail on a finding. `make fuzz` calls this.

python run.py [--seconds 60] [--Kang et al. 2020] [TARGET ...]

What one run learns stays in target/fuzz/corpus for the next; findings stay in target/fuzz/findings.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

FUZZ = Path(__file__).resolve().parent
ROOT = FUZZ.parent
WORK = ROOT / "target" / "fuzz"
BINARY = ROOT / "target" / "fuzz-bin" / "hyperslab-fuzz"
# Seconds for one input, memory of the process. What an input may hold is bounded in src/memory.rs, by its size.
LIMITS = ["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1", "-verbosity=1"]
PARSERS = ["hdf5", "netcdf3", "fits", "hdf4", "zarr", "read", "references", "dmrpp", "versions", "mappings"]


def build(toolchain: str | None, sanitizer: str | None) -> None:
    """The one binary, where a process list shows what it is."""
    cargo = ["cargo", *([f"+{toolchain}"] if toolchain else [])]
    versions = subprocess.run([cargo[0].replace("cargo", "rustc"), *cargo[1:], "-vV"], capture_output=True, check=True)
    host = re.search(r"^host: (.+)$", versions.stdout.decode(), re.MULTILINE)
    assert host
    command = [*cargo, "build", "--release", "--target", host[1], "--target-dir", str(WORK / "build")]
    if sanitizer:
        command += ["--config", f'build.rustflags=["-Zsanitizer={sanitizer}"]']
    subprocess.run(command, cwd=FUZZ, check=True)
    BINARY.parent.mkdir(parents=True, exist_ok=True)
    new = BINARY.with_suffix(".new")
    shutil.copy(WORK / "build" / host[1] / "release" / "hyperslab-fuzz", new)
    new.replace(BINARY)  # another run may have the old one


def make_seeds() -> list[str]:
    """Inputs to start from; gives the targets that have some."""
    seeds = WORK / "seeds"
    corpus = os.environ.get("HYPERSLAB_CORPUS", "").split(":")
    corpora = [folder for folder in corpus if Path(folder).is_dir() and folder]
    command = [sys.executable, "-W", "ignore", str(FUZZ / "seeds.py"), str(seeds), *corpora]
    subprocess.run(command, check=True)
    families = sorted({path.name for path in seeds.iterdir()} - set(PARSERS))
    return [*PARSERS, *families]


def environment(target: str) -> dict[str, str]:
    """The target's name, and a folder in memory for its files where there is one."""
    memory = "/dev/shm"
    folder = {"TMPDIR": memory} if os.access(memory, os.W_OK) else {}
    sanitizer = {"ASAN_OPTIONS": "detect_odr_violation=0"}  # libdeflate includes one of its files several times
    return {**os.environ, **folder, **sanitizer, "HYPERSLAB_FUZZ_TARGET": target}


def run(target: str, seconds: float, seed: int) -> tuple[int, list[Path]]:
    """Fuzz one target for some time; executions and findings. A finding ends it."""
    corpus, findings = WORK / "corpus" / target, WORK / "findings" / target
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    log = WORK / f"{target}.log"
    execution_count, end, new = 0, time.monotonic() + seconds, list[Path]()
    while not new and (left := int(end - time.monotonic())) > 0:
        before = set(findings.iterdir())
        flags = [*LIMITS, f"-seed={seed}", f"-max_total_time={left}", f"-artifact_prefix={findings}/"]
        command = [str(BINARY), *flags, str(corpus), str(WORK / "seeds" / target)]
        with log.open("wb") as out:
            done = subprocess.run(command, env=environment(target), cwd=WORK, stderr=out, stdout=out, check=False)
        execution_count += executions(log)
        suspects = sorted(set(findings.iterdir()) - before)
        if done.returncode and not suspects:
            raise SystemExit(f"{target} ended with {done.returncode}: see {log}")
        new = [path for path in suspects if repeats(target, path)]
    return execution_count, new


def executions(log: Path) -> int:
    """As libFuzzer's statistics have it, or its last line of progress where it was cut short."""
    text = log.read_text(errors="replace")[-20000:]
    counts = re.findall(r"stat::number_of_executed_units: (\d+)", text) or re.findall(r"^#(\d+)\t", text, re.MULTILINE)
    return int(counts[-1]) if counts else 0


def repeats(target: str, finding: Path) -> bool:
    """Whether it fails again. A machine that was stopped for a while makes anything slow once."""
    command = [str(BINARY), *LIMITS, str(finding)]
    again = subprocess.run(command, env=environment(target), capture_output=True, cwd=WORK, check=False)
    if again.returncode == 0:
        finding.unlink()
    return again.returncode != 0


def main() -> None:
    """A table of targets, and exit status 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="only these")
    parser.add_argument("--seconds", type=float, default=60, help="shared among the targets")
    parser.add_argument("--seed", type=int, default=1, help="of libFuzzer's random choices")
    parser.add_argument("--toolchain", help="rustup's name of a compiler, for a sanitizer")
    parser.add_argument("--sanitizer", help="such as address; needs a nightly compiler")
    arguments = parser.parse_args()
    build(arguments.toolchain, arguments.sanitizer)
    known = make_seeds()
    targets = arguments.targets or known
    if unknown := set(targets) - set(known):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    print(f"{'target':<14}{'seconds':>8}{'executions':>12}  findings", flush=True)
    found = []
    for target in targets:
        start = time.monotonic()
        count, new = run(target, max(arguments.seconds / len(targets), 1), arguments.seed)
        found += new
        print(f"{target:<14}{time.monotonic() - start:>8.0f}{count:>12,}  {len(new)}", flush=True)
    for path in found:
        print(f"finding: HYPERSLAB_FUZZ_TARGET={path.parent.name} {BINARY.relative_to(ROOT)} {path.relative_to(ROOT)}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
