"""Run the command `course`: `python -m manyheads status` is the same as `course status`.

A notebook runs the command in this way, because it knows its interpreter and not its scripts.
"""

from .cli import main

if __name__ == "__main__":
    main()
