"""Submissions as data: found, read, never run."""

from .find import Submission, SubmissionError, find_submissions
from .read import AttemptSource, read_attempt

__all__ = ["AttemptSource", "Submission", "SubmissionError", "find_submissions", "read_attempt"]
