"""The payoff: a student's own attention learns to write.

A small character-level language model (box/worker/model.py) with the attempt's attention in it is trained on a text
that the course ships, beside a recorded curve of the reference.
"""
