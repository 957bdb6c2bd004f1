"""The hidden checks of all exercises.

They are a package, so that they can import the modules that they share. The names of these modules
begin with an underscore.
"""
