"""The line search: edits of a student's text after which every check passes.

An edit shows the line of a mistake, and does not name the misconception.
"""
