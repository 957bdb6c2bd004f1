"""A stand-in for the hosting service: its expressions, its runner, its API and its git remote, as
far as we use them.
"""
