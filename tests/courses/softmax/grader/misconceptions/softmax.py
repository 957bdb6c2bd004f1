from manyheads.checks import edit

MUTANTS = (
    ("shares_by_column", edit("powers.sum(axis=-1", "powers.sum(axis=0")),
    ("not_divided", edit(" / powers.sum(axis=-1, keepdims=True)", "")),
    ("not_shifted", edit("x - x.max(axis=-1, keepdims=True)", "x")),
)
