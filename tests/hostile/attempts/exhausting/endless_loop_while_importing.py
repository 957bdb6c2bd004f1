"""Loops for ever while it is imported."""
import time

while True:
    time.sleep(0.01)
