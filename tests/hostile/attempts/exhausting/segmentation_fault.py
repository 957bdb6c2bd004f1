"""Reads from address 0."""
import ctypes


def running_mean(x):
    return ctypes.string_at(0)
