"""`course verify`: test the claims that a course must satisfy."""

from .claims import Claim, verify_course

__all__ = ["Claim", "verify_course"]
