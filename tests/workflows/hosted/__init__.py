"""A stand-in for the hosting service: its API, its git remote and its runner of workflows."""
