"""Errors whose text is written for the person at the terminal."""


class CourseFault(Exception):
    """Wrong usage, or a fault of the grader. The text says what is wrong and which command to run next."""
