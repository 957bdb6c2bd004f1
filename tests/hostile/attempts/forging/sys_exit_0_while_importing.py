"""Asks Python to exit with status 0 while it is imported."""
import sys

sys.exit(0)
