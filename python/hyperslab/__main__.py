"""`python -m hyperslab`: the command line."""

from hyperslab.cli import main

if __name__ == "__main__":
    main()
