"""Results as pages that need nothing else: no network, no script, one file each."""

from .write import write_pages

__all__ = ["write_pages"]
