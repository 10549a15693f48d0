"""`python -m hyperslab`: the command line."""

import sys


def main() -> None:
    """Run the command line. `hyperslab run` starts a program at once, without importing the other commands."""
    if sys.argv[1:2] == ["run"]:
        from hyperslab.running.command import run

        sys.exit(run(sys.argv[2:]))
    from hyperslab.cli import main as run_command

    run_command()


if __name__ == "__main__":
    main()
