"""How many numbers of what each operation gives are asked for: along its last axes, and of how many of its runs."""

CORNER = (6, 8)  # for the eye
HEADS, TOKENS = 8, 41  # the lesson's sentence, character by character
TABLES = (HEADS, TOKENS, TOKENS)  # of every head of the first sequence, also where heads come one after the other:
TIMES = HEADS
