"""Questions of @@title's own, for `course ask`: what no template can ask. This file may go."""

from manyheads.student.question import Option, ask


def questions(material):
    """FILL: ask why, not only what. One option is right, and each other one has its cause."""
    for small in material.smalls:
        numbers = small.reply.outputs[0].tensor.numel()
        right = Option(str(numbers), "That is the product of the sizes of the result.")
        wrong = [
            Option(str(numbers + 1), "There one number more is counted."),
            Option(str(2 * numbers), "There each number is counted twice."),
            Option(str(numbers * numbers), "There each number meets each other one."),
        ]
        text = f"{small.runs} How many numbers does it return?"
        yield ask("own", text, right, wrong, material.rng)
