"""What the tests of the real course share: what both sides say of attempts at it."""

from tests.diagnosis.both_sides import sides  # noqa: F401
