"""`course verify`: run pytest on the claims that a course must satisfy.

The claims are the tests in this package.
"""
