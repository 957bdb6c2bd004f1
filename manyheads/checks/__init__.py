"""The names that authors of checks and mutants import: `check`, the asserts, `Mutant` and others.

Input: an implementation (an attempt, the reference or a mutant), and random numbers (`Draw`).
Output: a check returns, or raises CheckFailed with the sentence that the student reads.

1. `check` marks a function as a check. `function_contract` and `module_contract` return checks of
   general requirements (`contract`, with `module_expectations`).
2. A check draws inputs and calls an `Implementation`. Its `Runner` makes the call in the box or in
   the judge's process (`runner`).
3. The reply comes back as an `Answer`, which is used like a tensor. If the attempt raised, using
   the answer raises AttemptRaised, and `explain_exceptions` says why in a sentence.
4. `asserts` compare the answer with the reference or with values that the check computed.
5. `preconditions` have further calls made before checks of form count.
6. `edit` and `Mutant` make wrong attempts from the reference, for the diagnosis (`hidden_check`).

For example, this check passes if the attempt's `attend` returns the reference's numbers:

    @check(points=1, layer="values")
    def test_attends(attempt, reference, draw):
        "weighs the values"
        q, k, v = draw(2, 5, 8), draw(2, 5, 8), draw(2, 5, 8)
        assert_matches(attempt.attend(q, k, v), reference.attend(q, k, v))
"""

from ..box.worker.messages import (
    ComparedWithModule,
    Entries,
    OperationLimit,
    PlantedDifference,
    StandIn,
)
from .asserts import (
    HALF_PRECISION,
    CheckFailed,
    agrees,
    assert_differs,
    assert_finite,
    assert_gradients_match,
    assert_matches,
    assert_moved_from,
    assert_near,
    assert_refused,
    assert_same,
    assert_shape,
    assert_tensor,
    assert_unmutated,
    changed_positions,
    expect,
    relative_change,
)
from .contract import function_contract, module_contract
from .explain_exceptions import SafeText
from .hidden_check import (
    Evidence,
    Layer,
    Listed,
    Mutant,
    Number,
    Percent,
    Sizes,
    check,
    edit,
    replace_sizes,
)
from .module_expectations import moved_after_a_call
from .preconditions import Condition
from .runner import ImplementationModule

__all__ = [
    "HALF_PRECISION",
    "CheckFailed",
    "ComparedWithModule",
    "Condition",
    "Entries",
    "Evidence",
    "ImplementationModule",
    "Layer",
    "Listed",
    "Mutant",
    "Number",
    "OperationLimit",
    "Percent",
    "PlantedDifference",
    "SafeText",
    "Sizes",
    "StandIn",
    "agrees",
    "assert_differs",
    "assert_finite",
    "assert_gradients_match",
    "assert_matches",
    "assert_moved_from",
    "assert_near",
    "assert_refused",
    "assert_same",
    "assert_shape",
    "assert_tensor",
    "assert_unmutated",
    "changed_positions",
    "check",
    "edit",
    "expect",
    "function_contract",
    "module_contract",
    "moved_after_a_call",
    "relative_change",
    "replace_sizes",
]
