"""The hidden checks: a package, so that they can import what they share from files whose names
begin with an underscore.
"""
