"""Loops for ever with every signal ignored or blocked."""
import signal

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
                pass
        except BaseException:
            continue
