"""Run the steps of one call: each may be given what an earlier one returned, which never leaves this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .answers import Output
from .form import Form, misfit
from .messages import FollowUp, Returned
from .structure import fits, leaves_of, outputs_of, part_at

UNASKED = "nothing"  # came of a step that could not be taken, for an earlier one returned another structure


@dataclass(frozen=True)
class Run:
    """What the steps returned, up to the first that returned another structure than is asked.

    read: the outputs of the earlier steps, as they were when each returned: a later step may change them in place.
    """

    form: Form
    results: Sequence[object]
    read: Sequence[Output]
    steps: int

    def outputs(self) -> list[Output]:
        """Return an output for each leaf of each step."""
        left = [Output(misfit(0, UNASKED))] * ((self.steps - len(self.results)) * self.form.count)
        return [*self.read, *outputs_of(self.results[-1], self.form), *left]

    def leaves(self) -> list[object]:
        """Return the value at each leaf of each step, up to a step of another structure."""
        return [leaf for result in self.results if fits(result, self.form) for leaf in leaves_of(result, self.form)]


def run_steps(subject: Any, steps: Sequence[FollowUp], form: Form) -> Run:
    """Take the steps. Raises whatever the attempt's code raises."""
    results: list[object] = []
    read: list[Output] = []
    for step in steps:
        if results:
            if not fits(results[-1], form):
                break
            read += outputs_of(results[-1], form)
        if step.training is not None:
            subject.train(step.training)
        given = step.map(lambda v: part_at(results[v.step], form, v.path) if isinstance(v, Returned) else v)
        results.append(subject(*given.args, **given.kwargs))
    return Run(form, results, read, len(steps))
