"""What silent mistakes cost a small language model: the table of docs/gallery.md.

    python -m bench.gallery [--only NAME …] [--seeds N] [--steps N]

The model is that of `course train`, with the attention of exercise 7. A wrong attention is the
first mutant of a misconception in the bank, or an edit of the reference. It learns beside the right
one with the same seed: their first weights, windows and random numbers of dropout are the same.
One more model has the right attention and other first weights, because a difference that is no
larger than the one that these make is not measurable.

NAME is the id of a misconception. All of the table takes 75 models, and each seed has its own
process. A training with fewer steps is the first part of a whole one. The programs are those of the
course, so they run without the box.
"""

from __future__ import annotations

import argparse
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from statistics import fmean

import torch
import torch.nn.functional as F
from torch import Tensor

from manyheads.box.worker.messages import InitModel
from manyheads.box.worker.training import STEPS, LanguageModel, T, Trainer
from manyheads.checks.hidden_check import Edit
from manyheads.checks.runner import namespace_of_source
from manyheads.course import Exercise, load_course
from manyheads.diagnosis import load_bank
from manyheads.diagnosis.bank import Namespace
from manyheads.judge.judge_process import usable_cpu_count
from manyheads.student.train_model import TrainingRun, attention_of, read_text

ROOT = Path(__file__).parents[1]
OTHER_WEIGHTS = 100  # added to a seed, it is the seed of other first weights
STEP_SEEDS = 1_000_003  # the difference between the step seeds of two seeds
HELD_OUT = 0.1  # the share of the book, at its end, that no model reads
WINDOWS, LENGTHS = 128, range(T // 8, T + 1, T // 8)  # for the loss in writing
RECENT = 50  # steps over which the loss in learning is averaged
PROMPT, CHARACTERS, SHOWN = "Alice ", 120, 88  # for samples: characters written, and printed
COLUMNS = ("what was wrong", "learning", "writing", "beside the right one", "in a trained model")


@dataclass(frozen=True)
class Entry:
    """A kind of model.

    Attributes:
        id: the misconception, or a name for the right attention.
        changes: an edit of the reference, in place of the first mutant in the bank.
        dropout: the rate of dropout.
        sample: the name of its sample on the page, or "" for no sample.
        added_weight_seed: is added to the seed of its first weights.
    """

    id: str
    changes: Mapping[str, str] = field(default_factory=dict)
    dropout: float = 0.0
    sample: str = ""
    added_weight_seed: int = 0


DROPOUT = 0.2
RIGHT = Entry("right", sample="right")
OTHER_RIGHT = Entry("right with other first weights", added_weight_seed=OTHER_WEIGHTS)
RIGHT_DROPOUT = Entry("right with dropout", dropout=DROPOUT)
RIGHT_ENTRIES = (RIGHT, OTHER_RIGHT, RIGHT_DROPOUT)
WRONG_ENTRIES = (
    Entry("wrong_view", sample="viewed straight to heads"),
    Entry("wrong_view_both"),
    Entry("merge_no_transpose"),
    Entry("heads_interleaved"),
    Entry(
        "heads_averaged",
        {"y.transpose(1, 2).reshape(B, T, C)": "y.mean(1).repeat(1, 1, self.n_head)"},
    ),
    Entry("scale_sqrt_c", sample="divided by √C"),
    Entry("scale_missing", sample="did not scale"),
    Entry("scale_no_sqrt"),
    Entry("softmax_query_axis", sample="softmax over queries"),
    Entry(
        "softmax_wrong_axis",  # over the whole table
        {"scores.softmax(dim=-1)": "scores.flatten(-2).softmax(dim=-1).view_as(scores)"},
    ),
    Entry("mask_missing", sample="no mask"),
    Entry("mask_peeks_one"),
    Entry("mask_zero_fill"),
    Entry("mask_weak_fill"),
    Entry("mask_after_softmax"),
    Entry("proj_missing"),
    Entry("qkv_order"),
    Entry(
        "gradient_cut",  # that of q and k
        {"scores = q": "scores = q.detach()", "k.transpose(-2": "k.detach().transpose(-2"},
        sample="gradient cut",
    ),
    Entry("params_not_registered"),
    Entry("dropout_always_on", dropout=DROPOUT),
    Entry("dropout_missing", dropout=DROPOUT),
    Entry(
        "dropout_before_softmax",  # before the mask, because a dropped −inf is NaN
        {
            "scores.masked_fill(": "self.attn_dropout(scores).masked_fill(",
            "self.attn_dropout(scores.softmax(dim=-1))": "scores.softmax(dim=-1)",
        },
        dropout=DROPOUT,
    ),
)


@dataclass(frozen=True)
class Outcome:
    """A model after its last step.

    Attributes:
        learning: the loss in learning.
        writing: the loss in writing.
        sample: the text that the model writes.
        transplanted: the loss in writing with the learned weights of the right one. None if the
            model does not have the same parameters.
    """

    learning: float
    writing: float
    sample: str
    transplanted: float | None = None


Outcomes = Mapping[str, Outcome]  # the outcomes of one seed, by the id of the entry


class SeededTrainer(Trainer):
    """A Trainer whose first weights, windows and dropout are drawn with these seeds."""

    def __init__(self, seed: int, weight_seed: int) -> None:
        self._seed, self._weight_seed = seed, weight_seed

    def _build(self, namespace: Mapping[str, object], message: InitModel) -> None:
        """Build the model, and draw each matrix anew, with its name in the seed.

        So weights of the same name are the same in each module. The buffers are included, because
        an unregistered weight is one.
        """
        super()._build(namespace, message)
        for name, weight in chain(self.model.named_parameters(), self.model.named_buffers()):
            if weight.is_floating_point() and weight.dim() > 1:
                is_embedding = name in ("tokens.weight", "positions.weight")
                deviation = 0.3 if is_embedding else weight.shape[-1] ** -0.5  # as `initialise`
                seed = zlib.crc32(f"{self._weight_seed} {name}".encode())
                weight.data.normal_(0.0, deviation, generator=torch.Generator().manual_seed(seed))

    def _step(self) -> Tensor:
        seed = self._seed * STEP_SEEDS + self._steps
        self._draw.manual_seed(seed)
        torch.default_generator.manual_seed(seed)  # for dropout
        return super()._step()


@cache
def exercise() -> Exercise:
    """Return the exercise whose module is trained."""
    return next(e for e in load_course(ROOT).exercises if e.id == "fused_qkv")


def namespace_of_entry(entry: Entry) -> Namespace:
    """Return the names that the code of an entry defines."""
    bank = load_bank(exercise())
    if entry.changes or entry in RIGHT_ENTRIES:
        path, reference = bank.reference
        return namespace_of_source(Edit(entry.changes).apply(reference), path)
    return next(mutant.namespace for mutant in bank.mutants if mutant.id == entry.id)


@torch.no_grad()
def writing_loss(model: LanguageModel, held_out: Tensor) -> float:
    """Return the mean loss of a next character, after each of LENGTHS characters of each window.

    The windows are spread over the text, (N,). The model gets no character after those.
    """
    model.eval()
    windows = held_out.long().unfold(0, T + 1, 1)
    windows = windows[torch.linspace(0, len(windows) - 1, WINDOWS).long()]
    losses = [F.cross_entropy(model(windows[:, :n])[:, -1], windows[:, n]) for n in LENGTHS]
    return torch.stack(losses).mean().item()


def train(
    entry: Entry, seed: int, steps: int, learned: Mapping[str, Tensor] | None = None
) -> tuple[Outcome, dict[str, Tensor]]:
    """Train a model, and return its outcome and its parameters.

    Args:
        entry: the kind of model.
        seed: the seed.
        steps: the number of steps, at most STEPS.
        learned: the parameters of the right one for `transplanted`, if this is to be measured.

    Raises:
        AttemptStopped: a loss is NaN, or the code of the entry raises an exception.
    """
    started, trainable = time.monotonic(), exercise().train
    assert trainable is not None
    attention = attention_of(trainable)
    if entry.dropout:
        attention = replace(attention, kwargs={**attention.kwargs, "dropout": entry.dropout})
    namespace = namespace_of_entry(entry)
    trainer = SeededTrainer(seed, seed + entry.added_weight_seed)
    run = TrainingRun(
        lambda message: trainer.answer(namespace, message, entry.id), text=read_text()
    )
    ids = run.numbers(run.text)
    read, held_out = ids.split([len(ids) - int(HELD_OUT * len(ids)), int(HELD_OUT * len(ids))])
    init_model = InitModel(attention, len(run.vocabulary), read)
    run.reply_to(init_model, "while it was made")
    losses = [run.step(number) for number in range(1, steps + 1)]
    parameters = {name: p.detach() for name, p in trainer.model.named_parameters()}
    writing = writing_loss(trainer.model, held_out)
    sample = " ".join(run.write(PROMPT, CHARACTERS).split())[:SHOWN]
    outcome = Outcome(fmean(losses[-RECENT:]), writing, sample)
    if learned is not None and parameters.keys() == learned.keys():
        run.reply_to(init_model, "while it was made again")
        trainer.model.load_state_dict(learned, strict=False)  # without buffers
        outcome = replace(outcome, transplanted=writing_loss(trainer.model, held_out))
    seconds = time.monotonic() - started
    print(f"{entry.id}, seed {seed}, {seconds:.0f} s: {outcome}", file=sys.stderr, flush=True)
    return outcome, parameters


def train_all(entries: Sequence[Entry], steps: int, seed: int) -> Outcomes:
    """Train the right ones and these wrong ones with a seed, and return the outcomes."""
    torch.set_num_threads(1)
    outcomes, learned = dict[str, Outcome](), dict[float, dict[str, Tensor]]()
    outcomes[OTHER_RIGHT.id], _ = train(OTHER_RIGHT, seed, steps)
    for right in (RIGHT, RIGHT_DROPOUT):
        if right is RIGHT or any(entry.dropout for entry in entries):
            outcomes[right.id], learned[right.dropout] = train(right, seed, steps)
    for entry in entries:
        outcomes[entry.id], _ = train(entry, seed, steps, learned[entry.dropout])
    return outcomes


def differences(entry: Entry, seeds: Sequence[Outcomes]) -> list[float]:
    """Return for each seed how much greater the loss in writing is than that of the right one."""
    right = RIGHT_DROPOUT if entry.dropout else RIGHT
    return [outcomes[entry.id].writing - outcomes[right.id].writing for outcomes in seeds]


def cost(entry: Entry, seeds: Sequence[Outcomes]) -> float:
    """Return the mean difference to the right one, or 0 if it is not measurable."""
    by_seed = differences(entry, seeds)
    have_one_sign = min(by_seed) > 0 or max(by_seed) < 0
    return fmean(by_seed) if have_one_sign and abs(fmean(by_seed)) > luck(seeds) else 0.0


def luck(seeds: Sequence[Outcomes]) -> float:
    """Return by how much other first weights change the loss of the right one, at most."""
    return max(map(abs, differences(OTHER_RIGHT, seeds)))


def table(entries: Sequence[Entry], seeds: Sequence[Outcomes]) -> Iterator[str]:
    """Yield the lines of the table: first the right ones, then the most expensive mistakes."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{' --- |' * len(COLUMNS)}"
    for entry, name in ((RIGHT, "nothing"), (RIGHT_DROPOUT, f"nothing, dropout {DROPOUT}")):
        if entry.id in seeds[0]:
            learning, writing = _mean_losses(entry, seeds)
            yield f"| **{name}** | **{learning:.2f}** | **{writing:.2f}** |  |  |"
    texts = load_bank(exercise()).texts
    for entry in sorted(entries, key=lambda entry: -cost(entry, seeds)):
        title = texts[entry.id].title + (f" (dropout {DROPOUT})" if entry.dropout else "")
        learning, writing = _mean_losses(entry, seeds)
        by_seed = differences(entry, seeds)
        mean = cost(entry, seeds)
        words = f"**{_signed(mean)}**" if mean else "nothing measurable"
        beside = f"{words} ({_signed(min(by_seed))} to {_signed(max(by_seed))})"
        losses = [outcomes[entry.id].transplanted for outcomes in seeds]
        numbers = [loss for loss in losses if loss is not None]
        transplanted = f"{fmean(numbers):.2f}" if numbers else "–"
        yield f"| {title} | {learning:.2f} | {writing:.2f} | {beside} | {transplanted} |"


def _mean_losses(entry: Entry, seeds: Sequence[Outcomes]) -> tuple[float, float]:
    """Return the mean loss in learning and the mean loss in writing."""
    of_entry = [outcomes[entry.id] for outcomes in seeds]
    learning = fmean(outcome.learning for outcome in of_entry)
    return learning, fmean(outcome.writing for outcome in of_entry)


def _signed(number: float) -> str:
    return f"{number:+.2f}".replace("-", "−")


def main() -> None:
    """Print the table, and samples of the text that the models with the first seed write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ids = [entry.id for entry in WRONG_ENTRIES]
    parser.add_argument("--only", nargs="*", default=ids, choices=ids, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    parser.add_argument("--steps", type=int, default=STEPS, metavar="N")
    options = parser.parse_args()
    if not 1 <= options.steps <= STEPS or options.seeds < 1:
        parser.error(f"At least one seed and one step are needed, and at most {STEPS} steps.")
    entries = [entry for entry in WRONG_ENTRIES if entry.id in options.only]
    with ProcessPoolExecutor(usable_cpu_count()) as pool:
        train_seed = partial(train_all, entries, options.steps)
        seeds = [*pool.map(train_seed, range(options.seeds))]
    print(*table(entries, seeds), sep="\n")
    print(f"\nSeeds: {options.seeds}. Steps: {options.steps}. ", end="")
    print(f"Other first weights move the right one by up to {luck(seeds):.3f}.\n")
    for entry in (RIGHT, *entries):
        if entry.sample:
            print(f"    {entry.sample:26}{seeds[0][entry.id].sample}")


if __name__ == "__main__":
    main()
