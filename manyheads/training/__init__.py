"""`course train`: a language model with a student's attention learns to write.

A small character-level language model (box/worker/model.py) with the attempt's attention is trained on a text that the
engine ships, and compared with a recorded curve of the reference.
"""
