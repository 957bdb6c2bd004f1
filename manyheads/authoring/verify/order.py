"""The claim that a student's own order of layers decides no diagnosis."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from unittest import mock

from torch import nn

from ...checks.local import LocalRecordingRunner
from ...course import Exercise
from ...diagnosis import Bank, Mutant
from ...diagnosis.recording import Fingerprints
from ...public.check import check_attempt
from .claim import Claim
from .trial import Namespace, Trial

HOLDERS = ("_modules", "_buffers", "_parameters")  # of a module, each in the order in which it was filled


def verify_order(
    exercise: Exercise, bank: Bank, fingerprints: Fingerprints, trial: Trial, count: int | None
) -> Iterator[Claim]:
    """The claim, tried with `count` mutants that are modules, all where it is None. None where there is no such mutant."""
    modules = [mutant for mutant in bank.mutants if _modules_of(mutant.namespace)]
    if not modules:
        return
    chosen = random.Random(exercise.id).sample(modules, len(modules))[:count]
    failures = []
    for mutant in chosen:
        usual = _told(mutant, fingerprints, trial)
        with made_in_another_order(mutant.namespace):
            other = _told(mutant, fingerprints, trial)
        failures += [f"{mutant.id} is named {a}, then {b}" for a, b in zip(usual, other, strict=True) if a != b]
    yield Claim(
        exercise.id,
        "every mutant has the same names if its layers are made in another order",
        2 * len(chosen) - len(failures),
        2 * len(chosen),
        tuple(failures),
        next=f"let no check compare weights that nobody gave, then course verify {exercise.id}",
    )


@contextmanager
def made_in_another_order(namespace: Namespace) -> Iterator[None]:
    """Let every module of these classes hold its layers and buffers in the reverse order, with weights drawn in it."""
    with ExitStack() as patches:
        for module in _modules_of(namespace):
            patches.enter_context(mock.patch.object(module, "__init__", _reversed(module.__init__)))
        yield


def _reversed(init: Callable[..., None]) -> Callable[..., None]:
    """The constructor, and then the other order. What it raises it raises here, too."""

    @wraps(init)
    def made(self: nn.Module, *arguments: object, **named: object) -> None:
        init(self, *arguments, **named)
        for name in HOLDERS:
            held = vars(self).get(name) or {}
            again = list(reversed(held.items()))
            held.clear()
            held.update(again)
        for layer in self.children() if "_modules" in vars(self) else ():
            if isinstance(layer, nn.Linear):
                layer.reset_parameters()

    return made


def _told(mutant: Mutant, fingerprints: Fingerprints, trial: Trial) -> tuple[list[str], list[str]]:
    """The names when it is graded, and those at home."""
    at_home = check_attempt(fingerprints, LocalRecordingRunner(mutant.namespace))
    return [d.id for d in trial(mutant.namespace)[1]], [d.id for d in at_home.diagnosis]


def _modules_of(namespace: Namespace) -> list[type[nn.Module]]:
    found = {value for value in namespace.values() if isinstance(value, type) and issubclass(value, nn.Module)}
    return sorted(found, key=lambda module: module.__qualname__)
