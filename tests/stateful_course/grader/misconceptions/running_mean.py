"""Wrong running means over chunks, each an edit of the reference."""

from manyheads.checks import edit

STATE = "state if state is not None else (0.0, 0)"
RETURNED = "return sums / counts[:, None], (sums[:, -1:], count + x.shape[1])"
KEPT = {"count = " + STATE: 'count = getattr(self, "seen", (0.0, 0))'}
SHARED = edit(
    RETURNED, "self.seen = (sums[:, -1:], count + x.shape[1])\n        return sums / counts[:, None], self.seen", KEPT
)

MUTANTS = (
    ("state_ignored", edit(STATE, "(0.0, 0)")),
    ("count_forgotten", edit("device=x.device) + count", "device=x.device)")),
    ("state_alone", edit(RETURNED, "return sums / counts[:, None]")),
    (
        "state_changed",
        edit(RETURNED, "if state is not None:\n            total += sums[:, -1:] - total\n        " + RETURNED),
    ),
    ("state_shared", SHARED),
    ("sum_not_mean", edit("sums / counts[:, None]", "sums")),
    ("empty_unchecked", edit("if x.shape[1] == 0:", "if False:")),
)
