"""From a platform's download to an attempt's text. Everything here is read as data; nothing runs
student code.
"""

from .find import (
    ENDINGS,
    NotGraded,
    Submission,
    find_submissions,
    is_archive,
    is_reserved,
    is_student,
    printable_name,
    read_not_graded,
    write_not_graded,
)
from .read import largest, read_attempt, read_bytes, read_exercise, read_file, read_text, too_large
from .source import AttemptSource, Unreadable, code_digest, lines_of, proved_line

__all__ = [
    "ENDINGS",
    "AttemptSource",
    "NotGraded",
    "Submission",
    "Unreadable",
    "code_digest",
    "find_submissions",
    "is_archive",
    "is_reserved",
    "is_student",
    "largest",
    "lines_of",
    "printable_name",
    "proved_line",
    "read_attempt",
    "read_bytes",
    "read_exercise",
    "read_file",
    "read_not_graded",
    "read_text",
    "too_large",
    "write_not_graded",
]
