"""How much of each operation's output is requested: how many numbers along its last axes, and for how many runs.

Imports nothing: the command line reads it, which starts without torch.
"""

CROP = (6, 8)  # enough to read
HEADS, TOKENS = 8, 41  # TOKENS: the characters of the lesson's sentence
# All heads of the first sequence, also if they are computed one after the other (TIMES).
TABLES = (HEADS, TOKENS, TOKENS)
TIMES = HEADS
