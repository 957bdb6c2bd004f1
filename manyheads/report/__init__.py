"""Results as text, Markdown, pages, pictures, exports and feedback archives.

A function of this package takes values and returns text or bytes.
"""
