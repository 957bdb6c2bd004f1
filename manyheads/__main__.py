"""`python -m manyheads` is the command `course`."""

from .cli import main

if __name__ == "__main__":
    main()
