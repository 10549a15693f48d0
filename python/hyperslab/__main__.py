"""`python -m hyperslab`: the command line."""

import os
import sys


def main() -> None:
    """Run the command line. `hyperslab run` starts a program at once, without importing the other commands."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from hyperslab.cli.streams import open_closed_streams

        open_closed_streams()
    if sys.argv[1:2] == ["run"]:
        from hyperslab.running.command import run

        status = 1
        try:
            status = run(sys.argv[2:])
            sys.stdout.flush()
        except OSError as error:  # of the output
            status = status or 1
            if not isinstance(error, BrokenPipeError) and sys.stderr is not None:
                sys.stderr.write(f"hyperslab run: {error.strerror or error}\n")
        os._exit(status)  # all is done, and taking the interpreter apart takes milliseconds
    import signal

    # Until the command listens, and after it is done, Ctrl-C ends the process at once: nothing has begun yet.
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if listens:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from hyperslab.cli import main as run_command

    try:
        run_command()
    finally:
        if listens:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
