"""follow_readme.py runs every kind of block, and CI runs what README shows first."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from follow_readme import ROOT, blocks, followed

pytestmark = pytest.mark.slow  # an environment is made


def test_every_kind_of_block_is_followed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\n# saved.py\nkept = 1\nprint('first', kept)\n```\n```yaml\nname: x\n```\n"
        "```sh\n# a comment\nls saved.py\nfalse\necho two \\\n  words\n```\n"
        "```console\n$ python -c 'import sys; print(sys.prefix)'\nnot a command\n```\n"
        "```python\nprint('again', kept + 1)\n```\n```python\nraise SystemExit(3)\n```\n"
    )
    assert followed(page, sys.executable, tmp_path / "hyperslab-0-none.whl") == ["false", "raise SystemExit(3)"]
    said = capfd.readouterr().out
    for part in ("first 1", "saved.py", "two words", "again 2", "/environment\n"):
        assert part in said


def test_ci_runs_the_two_commands_for_a_clone() -> None:
    (first, *_) = (text for language, text in blocks(ROOT / "README.md") if language == "sh")
    assert re.findall(r"^make (\w+) +# \d+ minutes: ", first, flags=re.MULTILINE) == ["demo", "test"]
    ci = (ROOT / ".ci" / "run").read_text()
    (parts,) = re.findall(r"^test: (.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for target in ("demo", "readme", *parts.split()):
        assert re.search(rf"^make .*\b{target}\b", ci, flags=re.MULTILINE), target
