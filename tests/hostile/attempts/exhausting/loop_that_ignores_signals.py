"""Loops for ever with every signal ignored or blocked."""
import signal
import time

for number in signal.valid_signals():
    try:
        signal.signal(number, signal.SIG_IGN)
    except OSError:
        continue
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def running_mean(x):
    while True:
        try:
            while True:
                time.sleep(0.01)
        except BaseException:
            continue
