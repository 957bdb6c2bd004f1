"""Find submissions and read them as data. Nothing here runs student code."""

from .digest import code_digest
from .find import Submission, SubmissionError, closed_in, find_submissions, is_reserved, is_student
from .left_over import ENDINGS, is_archive
from .lines import proved_line
from .noise import is_noise
from .not_graded import NotGraded, read_not_graded, shown, write_not_graded
from .read import (
    AttemptSource,
    Unreadable,
    largest,
    read_attempt,
    read_bytes,
    read_exercise,
    read_file,
    read_text,
    too_large,
)
from .text import lines_of

__all__ = [
    "ENDINGS",
    "AttemptSource",
    "NotGraded",
    "Submission",
    "SubmissionError",
    "Unreadable",
    "closed_in",
    "code_digest",
    "find_submissions",
    "is_archive",
    "is_noise",
    "is_reserved",
    "is_student",
    "largest",
    "lines_of",
    "proved_line",
    "read_attempt",
    "read_bytes",
    "read_exercise",
    "read_file",
    "read_not_graded",
    "read_text",
    "shown",
    "too_large",
    "write_not_graded",
]
