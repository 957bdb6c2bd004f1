"""The line search: edits of a student's own text after which every check passes. Nothing in it
names anything.
"""
