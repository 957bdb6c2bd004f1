"""The fixture that grades an attempt at the real course and also runs `course check` on it."""

from tests.diagnosis.both_sides import sides  # noqa: F401
