"""The commands that a student runs on an attempt.

They show visible checks, the next hint, a trace, a picture, questions, training and measurements.
"""
