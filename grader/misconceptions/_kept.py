"""Modules that keep from one call to the next what they should not."""


def first(module, name, value):
    """What was kept under this name in the first call, which is this value if there was none
    before.
    """
    if name not in vars(module):
        object.__setattr__(module, name, value)
    return vars(module)[name]


def without_rate(module, right, *given):
    """Forget the rates of the dropouts in eval mode."""
    if not module.training:
        for part in module.modules():
            if hasattr(part, "p"):
                part.p = 0.0
    return right(*given)


def known_by_shape(module, right, x, *more):
    answers = first(module, "answers", {})
    if x.shape not in answers:
        answers[x.shape] = right(x, *more)
    return answers[x.shape]


def awake_after_training(module, right, *given):
    module.was = getattr(module, "was", False) or module.training
    for part in module.children():
        part.train(module.was)
    return right(*given)


def by_most_tokens(module, right, x, *more):
    module.most = max(getattr(module, "most", 0), x.shape[1])
    return right(x * x.shape[1] / module.most, *more)


def cut_to_first_batch(module, right, x, *more):
    batch = first(module, "batch", len(x))
    return right(x[:batch], *(each if each is None else each[:batch] for each in more))


def last_keep(module, right, x, context, keep=None):
    if keep is not None:
        module.kept = keep
    kept = getattr(module, "kept", None)
    return right(x, context, kept if kept is not None and kept.shape == context.shape[:2] else None)


def first_context(module, right, x, context, keep=None):
    kept = first(module, "context", context)
    return right(x, kept if kept.shape == context.shape else context, keep)


# (module, the right forward, what it is given) -> its answer.
KEPT = {
    "nothing": lambda module, right, *given: right(*given),
    "rate": without_rate,
    "answers": known_by_shape,
    "batch": cut_to_first_batch,
    "awake": awake_after_training,
    "tokens": by_most_tokens,
    "last_keep": last_keep,
    "context": first_context,
}


class Keeping:
    """Keeps what its knob `kept` says, and else answers as the class beside it."""

    def forward(self, *given):
        return KEPT[self.knobs.kept](self, super().forward, *given)
