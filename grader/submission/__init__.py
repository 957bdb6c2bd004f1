"""Submissions as data: found, read, never run."""

from .find import Submission, SubmissionError, find_submissions
from .read import AttemptSource, code_digest, read_attempt

__all__ = ["AttemptSource", "Submission", "SubmissionError", "code_digest", "find_submissions", "read_attempt"]
