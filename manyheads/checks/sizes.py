"""Sizes that differ pairwise, so that swapped axes show, and of which some follow from others."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from .hidden_check import Draw

Choice = tuple[int, int] | list[int]
Rule = Callable[[SimpleNamespace, Draw | None], int]


class Sizes:
    """Draws sizes that differ pairwise, of which some follow from others.

    Example: `SIZES = Sizes(nh=[5], hd=[6], C=lambda s, draw: s.nh * s.hd)`, then
    `s = SIZES(draw)` and `x = draw(7, s.C)`.

    Args:
        choices: as `draw.sizes` takes them, or a function of the sizes before it and of draw.
    """

    def __init__(self, **choices: Choice | Rule) -> None:
        self.choices = dict[str, Choice]()
        self.following = dict[str, Rule]()
        for name, choice in choices.items():
            if callable(choice):
                self.following[name] = choice
            else:
                self.choices[name] = choice

    def __call__(self, draw: Draw, **fixed: int) -> SimpleNamespace:
        """Return the sizes by name.

        Args:
            draw: draws the sizes.
            fixed: sizes that are not drawn. The sizes that follow from them change with them.
        """
        while True:
            s = self.changed(draw.sizes(**self.choices), draw)
            if len({*vars(s).values()}) == len(vars(s)):
                return self.changed(s, draw, **fixed) if fixed else s

    def changed(
        self, s: SimpleNamespace, draw: Draw | None = None, **sizes: int
    ) -> SimpleNamespace:
        """Return the same sizes, except for these and for those that follow from them."""
        s = changed(s, **sizes)
        for name, rule in self.following.items():
            setattr(s, name, rule(s, draw))
        return s


def changed(s: SimpleNamespace, **sizes: int) -> SimpleNamespace:
    """Return the same sizes, except for these.

    Example: `for case in (s, changed(s, T=1)): …`

    Args:
        s: sizes by name.
        sizes: the sizes to replace.
    """
    return SimpleNamespace(**{**vars(s), **sizes})
