"""Results as self-contained HTML pages: one file each, without network and scripts."""

from .write import write_pages

__all__ = ["write_pages"]
