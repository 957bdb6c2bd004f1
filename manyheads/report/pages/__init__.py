"""Results as self-contained HTML pages: one file each, without network and scripts."""

from .write import pages_folder, student_page, write_pages

__all__ = ["pages_folder", "student_page", "write_pages"]
