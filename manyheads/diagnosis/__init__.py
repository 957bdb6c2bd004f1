"""Find the misconception that explains how an attempt behaves."""

from .bank import Bank, MisconceptionText, Mutant, load_bank
from .diagnose import diagnose

__all__ = ["Bank", "MisconceptionText", "Mutant", "diagnose", "load_bank"]
