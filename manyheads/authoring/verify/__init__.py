"""`course verify`: pytest, run on the claims that a course must satisfy. They are the tests of this
package.
"""
