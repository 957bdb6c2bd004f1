"""From solutions to exercises: release, verify, new, init."""
