"""Checks without a reference: an attempt's answers held against recorded ones, on public inputs."""
