"""Lines of progress: how many a command writes depends on how busy the machine is."""

import re


def besides_progress(stderr: str) -> str:
    """What a command said on stderr besides its progress."""
    return "".join(line for line in stderr.splitlines(True) if not re.match(r"(grading|recording): \d+ ", line))
