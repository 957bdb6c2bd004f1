"""The steps of the class repository's workflow: collect a pull request's files, grade them, report.

The workflow file itself contains no logic. The content of a pull request is treated as data,
and so is what one job passes to another.
"""
