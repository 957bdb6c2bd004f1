"""Find the misconception that explains how an attempt behaves, and the line where it stands."""

from .bank import Bank, MisconceptionText, Mutant, load_bank
from .diagnose import diagnose

__all__ = ["Bank", "MisconceptionText", "Mutant", "diagnose", "load_bank"]
