"""Find the misconception that explains how an attempt behaves, and the line where it stands."""

from .bank import Bank, MisconceptionText, Mutant, load_bank

__all__ = ["Bank", "MisconceptionText", "Mutant", "load_bank"]
