"""`course verify`: whether the course keeps its promises. Every promise is a claim that can fail."""

from .claims import Claim, verify_course

__all__ = ["Claim", "verify_course"]
