"""Results as text, Markdown, pages, pictures, exports and feedback archives. Values in, text or
bytes out.
"""
