"""README's first example of `hyperslab run`: the script that it shows, unmodified, with the seconds that it names."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from run_programs import run

sys.path.insert(0, str(Path(__file__).parents[1] / "house"))
from pages import ROOT, blocks, name_of

README = ROOT / "README.md"


def test_the_script_prints_the_same_and_the_command_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xarray", reason="not installed: pip install 'hyperslab[xarray]'")
    monkeypatch.chdir(tmp_path)
    (maker,) = (text for language, text in blocks(README) if language == "python" and "to_netcdf(" in text)
    exec(compile(maker, "README.md", "exec"), {})
    (script,) = (text for language, text in blocks(README) if name_of(language, text) == "series.py")
    Path("series.py").write_text(script)
    before = subprocess.run(
        [sys.executable, "series.py", "ocean.nc"], capture_output=True, timeout=120, check=True
    ).stdout
    after = run(sys.executable, "series.py", "ocean.nc", cwd=tmp_path)
    assert (after.status, after.out, after.errors) == (0, before, "")
    assert before.count(b"\n") == 10
    assert after.served == 10, after.counts
    words = [sys.executable, "-m", "hyperslab", "run", "--", sys.executable, "series.py", "ocean.nc"]
    said = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stderr
    (shown,) = re.findall(r"^(hyperslab run: .*? in) ", README.read_text(), flags=re.MULTILINE)
    assert said.startswith(shown), said


def test_the_readme_names_the_seconds_once_and_in_the_bullet() -> None:
    text = README.read_text()
    (without,) = re.findall(
        r"^\$ time python series\.py ocean\.nc > before\.txt +# ([\d.]+) s$", text, flags=re.MULTILINE
    )
    command = r"^\$ time hyperslab run -- python series\.py ocean\.nc > after\.txt +# ([\d.]+) s$"
    (ours,) = re.findall(command, text, flags=re.MULTILINE)
    assert float(ours) < float(without)
    assert f"takes {ours} s, not {without} s" in text
    (better,) = re.findall(
        r"^\$ time python series\.py better\.nc > better\.txt +# ([\d.]+) s, not (.*) s:", text, re.MULTILINE
    )
    assert float(better[0]) < float(ours)
    assert better[1] == without
