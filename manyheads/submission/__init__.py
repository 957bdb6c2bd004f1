"""Find submissions and read them as data. Nothing here runs student code."""

from .find import Submission, SubmissionError, find_submissions
from .lines import proved_line
from .misnamed import misnamed
from .read import AttemptSource, Unreadable, code_digest, read_attempt, read_bytes, read_file, read_text

__all__ = [
    "AttemptSource",
    "Submission",
    "SubmissionError",
    "Unreadable",
    "code_digest",
    "find_submissions",
    "misnamed",
    "proved_line",
    "read_attempt",
    "read_bytes",
    "read_file",
    "read_text",
]
