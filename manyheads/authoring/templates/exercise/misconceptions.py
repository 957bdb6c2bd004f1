"""Wrong attempts at @@id, each an edit of the reference: a text that stands there once, and what stands there instead."""

from manyheads.checks import edit

MUTANTS = (
    # FILL: the mistakes that your students make, likely ones first; their words are in grader/texts.yaml
    ("@@{id}_unchanged", edit("return 2 * x", "return 1 * x")),
    ("@@{id}_too_short", edit("return 2 * x", "return (2 * x)[1:]")),
)
