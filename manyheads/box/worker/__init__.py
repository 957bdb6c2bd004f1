"""The only part of the engine that runs inside the box, next to student code.

It imports the standard library, torch and itself, and knows no
exercise. The judge uses `execute` too, to ask the reference and the mutants
the same calls in its own process.

The protocol, in order, on one stream socket an attempt:

    judge → worker   Load      the attempt's source text
    worker → judge   Reply     whether it could be imported
    judge → worker   Call      what to call, with which tensors
    worker → judge   Reply     tensors, or the student's exception
    ...              ...       until the judge hangs up

After a Batch, that many messages are answered together, which wakes the judge once.

Every message is eight bytes of length, big-endian, and one safetensors file:
tensors named t0, t1, … and a JSON body in its metadata that refers to them.
"""
