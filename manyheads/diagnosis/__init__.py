"""From behaviour to the misconception's name."""

from .bank import Bank, MisconceptionText, Mutant, load_bank
from .diagnose import diagnose

__all__ = ["Bank", "MisconceptionText", "Mutant", "diagnose", "load_bank"]
