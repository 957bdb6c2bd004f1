"""How much of each operation's output is requested: how many numbers along its last axes, and for how many runs."""

CROP = (6, 8)  # enough to read
HEADS, TOKENS = 8, 41  # TOKENS: the characters of the lesson's sentence
TABLES = (
    HEADS,
    TOKENS,
    TOKENS,
)  # all heads of the first sequence, also if they are computed one after the other (TIMES)
TIMES = HEADS
