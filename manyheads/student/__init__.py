"""What a student asks for: visible checks, the next hint, a trace, a picture, questions, training,
measurements.
"""
