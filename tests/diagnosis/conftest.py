"""What a student's machine and the grading say of a text."""

from tests.diagnosis.both_sides import sides  # noqa: F401
