"""Stops its own thread for ever."""
import signal
import threading


def running_mean(x):
    signal.raise_signal(signal.SIGSTOP)
    threading.Event().wait()
