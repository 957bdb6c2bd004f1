from manyheads.checks import edit

MUTANTS = (
    ("counts_from_one", edit("enumerate(words)", "enumerate(words, 1)")),
    ("unknown_left_out", edit("text.lower().split()]", "text.lower().split() if word in places]")),
    ("no_blanks", edit('" ".join', '"".join')),
)
