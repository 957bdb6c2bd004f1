"""Lay out what learning platforms give as submitted/<student>/<assignment>/. Files are data here, and archives hostile."""

from .collect import Collected, collect

__all__ = ["Collected", "collect"]
