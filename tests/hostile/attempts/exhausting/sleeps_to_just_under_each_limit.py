"""Sleeps nine tenths of what a call may take, in every call."""
import time

import torch


def running_mean(x):
    time.sleep(0.9)
    return torch.zeros(())
