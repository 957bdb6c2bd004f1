"""Make the fixture `sides` available to all tests of this folder."""

from tests.diagnosis.both_sides import sides  # noqa: F401
