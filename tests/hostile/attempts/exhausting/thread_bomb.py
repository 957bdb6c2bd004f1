"""Starts threads that never end, without end."""
import threading


def running_mean(x):
    forever = threading.Event()
    while True:
        threading.Thread(target=forever.wait).start()
