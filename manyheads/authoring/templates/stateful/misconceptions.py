"""Wrong attempts at @@id, each an edit of the reference: a text that stands there once, and what stands there instead."""

from manyheads.checks import edit

MUTANTS = (
    # FILL: the mistakes that your students make, likely ones first; their words are in grader/texts.yaml
    ("@@{id}_state_ignored", edit("0 if state is None else state", "0")),
    ("@@{id}_state_alone", edit("return y, y[:, -1:]", "return y")),
    ("@@{id}_unchanged", edit("self.proj(x).cumsum(1)", "self.proj(x)")),
)
