"""How an attempt learned, as text and as a picture."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from manyheads.report.figures import smoothed, training_png
from manyheads.report.training_text import WIDTH, spark, training_report, written_report
from manyheads.student.recorded_training import TrainingVerdict
from manyheads.student.training_plan import Curve

REFERENCE = Curve(tuple(4.0 - i / 100 for i in range(300)), {50: 3.5, 100: 3.0, 150: 2.5, 200: 2.0})
YOURS = Curve(tuple(4.0 - i / 200 for i in range(150)), {50: 3.75, 100: 3.5, 150: 3.25})


def shown(yours: Curve) -> list[str]:
    out = Console(file=StringIO(), width=100, highlight=False)
    out.print(training_report(yours, REFERENCE, TrainingVerdict(False, "Yours is slow.")), soft_wrap=True)
    assert isinstance(out.file, StringIO)
    return out.file.getvalue().splitlines()


def test_both_curves_stand_on_one_scale_up_to_the_same_step() -> None:
    head, yours, reference, mark, words = shown(YOURS)
    assert head.split() == ["learning", "writing"]
    assert (yours.split()[0], reference.split()[0]) == ("yours", "reference")
    assert yours.split()[2:] == ["3.38", "3.25"]
    assert reference.split()[2:] == ["2.75", "2.50"]
    assert len({len(line) for line in (head, yours, reference)}) == 1
    assert yours.split()[1][0] == reference.split()[1][0] == "█"
    assert (yours.split()[1][-1], reference.split()[1][-1]) == ("▅", "▁")
    assert len(yours.split()[1]) == WIDTH
    assert mark == "✗ Yours is slow."
    assert (
        words == "A loss of 3.25 means being as unsure as among 25.8 equally likely characters; at first it was 54.6."
    )


def test_a_few_steps_have_a_short_curve_and_no_loss_in_writing() -> None:
    _, yours, reference, _ = shown(YOURS.until(3))
    assert yours.split()[2:] == ["3.99", "–"]
    assert len(yours.split()[1]) == len(reference.split()[1]) == 3


def test_what_it_writes_is_folded_between_words() -> None:
    out = Console(file=StringIO(), width=100)
    out.print(written_report("Alice was beginning\n" + "to get very tired " * 6 + "of [bold]"))
    assert isinstance(out.file, StringIO)
    assert out.file.getvalue().splitlines() == [
        "It writes:",
        "  Alice was beginning",
        "  to get very tired to get very tired to get very tired to get very tired to",
        "  get very tired to get very tired of [bold]",
    ]


def test_a_small_curve_is_as_high_as_its_losses() -> None:
    assert spark([0, 1, 2, 7], 0, 7) == "▁▂▃█"
    assert spark([2, 2], 2, 2) == "▁▁"


def test_a_picture_is_drawn_of_whole_and_of_short_curves() -> None:
    for curve in (YOURS, YOURS.until(3)):
        assert training_png(curve, REFERENCE, "Fused QKV").startswith(b"\x89PNG")


def test_a_smooth_curve_keeps_its_place() -> None:
    steps, losses = smoothed(Curve(tuple(float(i) for i in range(1, 26)), {}))
    assert steps == losses == [5.5, 15.5, 23.0]
