"""A signal ends a command as itself, also where compiled code makes another exception of it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from hyperslab.cli.signals import as_signalled

# A model whose serializer, called by pydantic's compiled code, is where the signal arrives.
PROGRAM = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests by nohup has it ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
from pydantic import BaseModel, field_serializer
from hyperslab.cli.signals import as_signalled, end_by_signals

class Model(BaseModel):
    field: int = 1

    @field_serializer("field")
    def serialized(self, value):
        os.kill(os.getpid(), int(sys.argv[1]))
        return [value for _ in range(1000)]

end_by_signals()
try:
    with as_signalled():
        Model().model_dump_json()
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_inside_compiled_code(number: signal.Signals) -> None:
    command = [sys.executable, "-c", PROGRAM, str(int(number))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 128 + number, ended.stderr
    assert "Traceback" not in ended.stderr


def test_other_errors_stay() -> None:
    with pytest.raises(SystemError, match="its own"), as_signalled():
        raise SystemError("its own")
