"""The README can be followed word for word with the wheel of `make wheel`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from follow_readme import ROOT, followed

pytestmark = pytest.mark.slow  # an environment is made
WHEEL = os.environ.get("HYPERSLAB_WHEEL")


@pytest.mark.skipif(WHEEL is None, reason="it takes a wheel and a package index: make wheel, HYPERSLAB_WHEEL=dist/NAME")
@pytest.mark.timeout(3600)
def test_the_readme() -> None:
    assert followed(ROOT / "README.md", sys.executable, Path(str(WHEEL))) == []


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
