"""Wrong attempts at @@id: each replaces a text that occurs once in the reference by another one."""

from manyheads.checks import Mutant

DOUBLED = "return 2 * x"

MUTANTS = (
    # FILL: the mistakes that your students make, likely ones first; their words are in grader/texts.yaml
    Mutant("@@{id}_unchanged", "return 1 * x", replacing=DOUBLED),
    Mutant("@@{id}_too_short", "return (2 * x)[1:]", replacing=DOUBLED),
)
