"""From behaviour to the misconception's name."""

from .bank import Bank, Mutant, Text, load_bank
from .diagnose import diagnose

__all__ = ["Bank", "Mutant", "Text", "diagnose", "load_bank"]
