"""Claims about the questions of `course ask`: enough of them, each with one right option, and every wrong one with its cause."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

from ...box.connection import AttemptEnded
from ...box.level import Box
from ...box.worker.answers import Reply, Traced
from ...box.worker.messages import Call, TraceCall
from ...checks.implementation import LocalRunner
from ...course import Course, Exercise
from ...diagnosis.bank import Bank, Mutant, load_bank
from ...diagnosis.recording import Fingerprints
from ...diagnosis.recording_file import read
from ...student.ask_questions import TEMPLATES, draw, misconception_of
from ...student.question import ASKED, Option, Question
from ...student.question_versions import Material, material_of
from ...submission import AttemptSource
from .attempt_claims import right_paths, source_of
from .claim import Claim

FIT, DRAWN = 5, 40  # templates that should fit an exercise, and questions that are drawn at once
NAMED = 12  # wrong options of one draw whose misconception is looked for
VIEW_SHARE, STYLE_SHARE, FIT_SHARE = 0.95, 0.95, 0.6  # an exercise without named axes has few
MEND = "see docs/proof.md, How a question is made"
Readings = list[tuple[bool, str]]  # whether each option is what its version shows, with a label


def verify_questions(course: Course, box: Box, exercise: Exercise, seeds: int) -> Iterator[Claim]:
    """Yield the claims about one exercise's questions. seeds: how many times DRAWN questions are drawn."""
    asking = _Asking(course, box, exercise, read(exercise.fingerprints), load_bank(exercise))
    reference = source_of(exercise.solution)
    with closing(asking.material(reference, 0)) as material:
        fitting = [name for name, template in TEMPLATES.items() if any(q is not None for q in template(material))]
    short = () if len(fitting) >= FIT else (f"only {', '.join(fitting)}",)
    yield Claim(exercise.id, "questions of five templates fit it", min(len(fitting), FIT), FIT, short, FIT_SHARE, MEND)
    unproved: list[str] = []
    views: Readings = []
    drawn = 0
    for seed in range(seeds):
        with closing(asking.material(reference, seed)) as material, closing(asking.material(reference, seed)) as again:
            questions = draw(material, DRAWN)
            drawn += len(questions)
            unproved += [_label(q) for q in questions if not is_proved(q, again)]
            views += islice(asking.views(material, questions), NAMED)
    says = "a question has one right option, proved by another run"
    yield Claim.but_for(unproved, exercise.id, says, drawn, MEND)
    yield _of(exercise, "a misconception's own view gives its option", views, VIEW_SHARE)
    styles = [asking.enough(source_of(path)) for path in right_paths(exercise)]
    yield _of(exercise, "right attempts of all styles give five questions", styles, STYLE_SHARE)


def _of(exercise: Exercise, says: str, cases: Readings, share: float) -> Claim:
    return Claim.but_for([label for held, label in cases if not held], exercise.id, says, len(cases), MEND, share)


def is_proved(question: Question, again: Material) -> bool:
    """Return whether another run of the same versions finds the same option right, and no other."""
    return question.is_sound and all(_shows(option, again) for option in question.options)


def _shows(option: Option, again: Material) -> bool:
    if option.observe is None:
        return True
    version = again.own if option.edit is None else again.version(option.edit)
    try:
        return option.observe(version, again.own) == option.shows
    except AttemptEnded:
        return False


@dataclass(frozen=True)
class _Trusted:
    """A version that is trusted code: a mutant, or the reference."""

    mutant: Mutant

    def reply(self, call: Call) -> Reply:
        return LocalRunner(self.mutant.namespace).execute(call)

    def traced(self, call: TraceCall) -> Traced:
        raise AssertionError("no mutant is traced")


@dataclass(frozen=True)
class _Asking:
    course: Course
    box: Box
    exercise: Exercise
    fingerprints: Fingerprints
    bank: Bank

    def material(self, source: AttemptSource, seed: int) -> Material:
        return material_of(self.box, self.course.limits.for_worker(), self.exercise, self.fingerprints, source, seed)

    def enough(self, source: AttemptSource) -> tuple[bool, str]:
        """Return whether a right attempt gives as many questions as are asked at a time."""
        with closing(self.material(source, 0)) as material:
            count = len(draw(material))
        return count >= ASKED, f"{source.name}: {count} questions"

    def views(self, material: Material, questions: list[Question]) -> Iterator[tuple[bool, str]]:
        """Yield for each option that a misconception gives whether a mutant of it, run by itself, shows that option."""
        for question in questions:
            for option in question.options:
                if option.edit is None or question.template not in ("positions_moved", "easy_row"):
                    continue
                named = misconception_of(material, option)
                mutants = [m for m in self.bank.mutants if named is not None and m.id == named.id]
                if mutants:
                    label = f"{mutants[0].id}: {_label(question)} {option.text}"
                    yield any(_reads(option, material, mutant) for mutant in mutants), label


def _reads(option: Option, material: Material, mutant: Mutant) -> bool:
    assert option.observe is not None
    return option.observe(_Trusted(mutant), material.own) == option.shows


def _label(question: Question) -> str:
    return f"{question.template}: {question.text} {question.code}".strip()
