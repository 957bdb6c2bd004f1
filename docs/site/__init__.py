"""The site of the documentation: docs/*.md in four groups, and reference pages that are made from
the code.
"""
