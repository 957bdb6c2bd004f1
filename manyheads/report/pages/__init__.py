"""Results as self-contained HTML pages: one file each, which loads nothing."""

from .write import pages_folder, student_page, write_pages

__all__ = ["pages_folder", "student_page", "write_pages"]
