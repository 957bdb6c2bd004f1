"""The only part of the engine that runs inside the box, next to student code.

It imports only the standard library, the packages of `contents.PACKAGES` and itself, and it knows
no exercise. The judge also uses `execute`, to put the same calls to the reference and the mutants
in its own process.

The protocol, in order, for each attempt:

    judge → worker   Load      the attempt's source text
    worker → judge   Reply     whether it could be imported
    judge → worker   Call      a function or module to call, with its tensors
    worker → judge   Reply     tensors, or the student's exception
    ...              ...       until the judge closes the connection

After a Batch, so many messages are answered together, which wakes the judge only once.

Every message is eight bytes of length, big-endian, and one safetensors file:
tensors named t0, t1, … and a JSON body in its metadata that refers to them.
"""
