"""`python -m hyperslab`: the command line."""

import os
import sys


def main() -> None:
    """Run the command line. `hyperslab run` starts a program at once, without importing the other commands."""
    if sys.argv[1:2] == ["run"]:
        from hyperslab.running.command import run

        status = run(sys.argv[2:])
        try:
            sys.stdout.flush()
        except OSError:
            status = status or 1
        os._exit(status)  # all is done, and taking the interpreter apart takes milliseconds
    from hyperslab.cli import main as run_command

    run_command()


if __name__ == "__main__":
    main()
