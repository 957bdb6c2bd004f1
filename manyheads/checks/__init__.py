"""The names that authors of checks and mutants import: `check`, the asserts, `Mutant` and others.

The other modules of this package define how calls are put to an implementation and how its answers
are compared.
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
from .hidden_check import Evidence, Layer, Mutant, Number, Sizes, check, edit, replace_sizes
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
    "Mutant",
    "Number",
    "OperationLimit",
    "PlantedDifference",
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
