"""The diagnosis table: how every mutant and every pair answers a few fixed calls. It is computed once for a course.

Replaying a few hundred mutants and tens of thousands of pairs on each attempt's own inputs
would cost seconds. So the attempt is asked the same few calls (the *probes*), the table says
which mutants and pairs answer alike, and only those are replayed on the attempt's own inputs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import torch
from torch import Tensor

from ..box.worker.messages import Call
from ..checks.implementation import LocalRunner, Runner
from ..checks.recording import Exchange
from .bank import Bank, Mutant, Namespace
from .pair_answers import Pairs, no_pairs
from .sketch import Sketches, brief, sketch

MEMBERS = 3  # how many members of a class are tried in combination with another fault


@dataclass(frozen=True)
class Probe:
    """A fixed call: comparable call number `index` of the reference's run, and number `nth` of its check."""

    index: int
    check: str
    nth: int
    call: Call


@dataclass(frozen=True)
class Table:
    """Classes of mutants that answer every probe alike. silent: (classes, probes), whether a class changes nothing there."""

    probes: tuple[Probe, ...]
    classes: tuple[tuple[int, ...], ...]  # indices into the bank, most likely first
    answers: tuple[Sketches, ...]  # of the classes, for each probe
    silent: Tensor
    pairs: Pairs


def build_table(bank: Bank, reference: Runner, exchanges: Sequence[Exchange]) -> Table:
    """Build the table of an exercise from exchanges of the reference on fixed inputs. It takes seconds to a minute."""
    probes = [probe_at(exchanges, i) for i in range(len(exchanges))]
    runners = [LocalRunner(m.namespace, only_values=True) for m in bank.mutants]
    answers = [sketch([p.execute(probe.call) for p in runners]) for probe in probes]
    right = [sketch([reference.execute(probe.call)]) for probe in probes]
    silent = torch.stack([a.agree_with(r) for a, r in zip(answers, right, strict=True)], 1)
    classes = _classes(answers, silent)
    keep = _select_probes(answers, silent, classes, [p.call.cotangent is not None for p in probes])
    probes, answers, silent = [probes[k] for k in keep], [answers[k] for k in keep], silent[:, keep]
    heads = [members[0] for members in classes]
    table = Table(
        tuple(probes),
        tuple(tuple(members) for members in classes),
        tuple(a.at(heads) for a in answers),
        silent[heads],
        no_pairs(),
    )
    return dataclasses.replace(table, pairs=_pairs(bank, table))


def probe_at(exchanges: Sequence[Exchange], index: int) -> Probe:
    """The probe made from this exchange."""
    check = exchanges[index].check
    return Probe(index, check, sum(e.check == check for e in exchanges[:index]), exchanges[index].call)


def _classes(answers: Sequence[Sketches], silent: Tensor) -> list[list[int]]:
    """Group mutants that answer alike. Mutants that change no value are left out."""
    classes: list[list[int]] = []
    heads: list[int] = []
    for i in range(len(silent)):
        if bool(silent[i].all()):
            continue
        alike = torch.ones(len(heads), dtype=torch.bool)
        for each in answers:
            alike &= each.at(heads).agree_with(each.at([i])) | _both_unknown(each, heads, i)
        home = alike.nonzero().flatten().tolist()
        if home:
            classes[home[0]].append(i)
        else:
            classes.append([i])
            heads.append(i)
    return classes


def _both_unknown(answers: Sketches, heads: list[int], i: int) -> Tensor:
    return (answers.structure[heads] == answers.structure[i]) & (answers.structure[i] == 0)


def _select_probes(
    answers: Sequence[Sketches], silent: Tensor, classes: list[list[int]], gradients: list[bool]
) -> list[int]:
    """As few probes as distinguish all classes from each other and from the reference. Probes with gradients are chosen
    only if no other probe distinguishes.
    """
    heads = [members[0] for members in classes]
    every = [_differing(a.at(heads), silent[heads, k]) for k, a in enumerate(answers)]
    left = torch.stack(every).any(0) if every else torch.zeros(0)
    keep: list[int] = []
    while bool(left.any()):
        gains = [int((each & left).sum()) for each in every]
        best = max(range(len(every)), key=lambda k: (bool(gains[k]) and not gradients[k], gains[k]))
        keep.append(best)
        left &= ~every[best]
    return sorted(keep)


def _differing(answers: Sketches, silent: Tensor) -> Tensor:
    """(classes, classes + 1) bool: which classes differ on this probe; the last column is the reference."""
    rows = [~answers.agree_with(answers.at([i])) for i in range(len(silent))]
    return torch.cat([torch.stack(rows, 1), ~silent[:, None]], 1)


def _pairs(bank: Bank, table: Table) -> Pairs:
    """The answer of every pair of classes that both change something on some probe."""
    first, second, where, replies = [], [], [], []
    distinguished = [int(_differing(each, table.silent[:, k]).sum()) for k, each in enumerate(table.answers)]
    returned = [(~each.raised()).tolist() for each in table.answers]
    gradients = [probe.call.cotangent is not None for probe in table.probes]
    for a, b in combinations(range(len(table.classes)), 2):
        both = (~table.silent[a] & ~table.silent[b]).nonzero().flatten().tolist()
        made = next(combined(bank, table.classes[a], table.classes[b]), None) if both else None
        if made is None:
            continue
        # Prefer a probe on which neither raises, then one without gradients, of which nothing is kept and which cost as much
        # as all else, then the one that distinguishes most classes.
        probe = max(both, key=lambda k: (returned[k][a] and returned[k][b], not gradients[k], distinguished[k]))
        reply = LocalRunner(made[1], only_values=True).execute(table.probes[probe].call)
        first.append(a)
        second.append(b)
        where.append(probe)
        replies.append(brief(reply))
    if not first:
        return no_pairs()
    columns = [torch.tensor(column, dtype=torch.int16) for column in (first, second, where)]
    return Pairs(columns[0], columns[1], columns[2], _stack(replies))


def combined(
    bank: Bank, first: Sequence[int], second: Sequence[int]
) -> Iterator[tuple[tuple[Mutant, Mutant], Namespace]]:
    """Combinations of the first members of two classes, if their faults can be combined: most likely first.

    Members of a class answer alike alone, but perhaps not in combination with another fault.
    """
    for a, b in product(first[:MEMBERS], second[:MEMBERS]):
        pair = bank.mutants[a], bank.mutants[b]
        if (namespace := bank.combine(*pair)) is not None:
            yield pair, namespace


def _stack(rows: Sequence[Sketches]) -> Sketches:
    return Sketches(*(torch.cat([getattr(row, f) for row in rows]) for f in ("structure", "numbers", "scales")))
