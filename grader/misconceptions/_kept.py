"""Modules that wrongly keep something from one call to the next."""


def first_value(module, name, value):
    """Return the value that was kept under this name; keep this one if there is none yet."""
    if name not in vars(module):
        object.__setattr__(module, name, value)
    return vars(module)[name]


def without_rate(module, forward, *args):
    """Forget the rates of the dropouts in eval mode."""
    if not module.training:
        for submodule in module.modules():
            if hasattr(submodule, "p"):
                submodule.p = 0.0
    return forward(*args)


def known_by_shape(module, forward, x, *args):
    answers = first_value(module, "answers", {})
    if x.shape not in answers:
        answers[x.shape] = forward(x, *args)
    return answers[x.shape]


def awake_after_training(module, forward, *args):
    module.was = getattr(module, "was", False) or module.training
    for submodule in module.children():
        submodule.train(module.was)
    return forward(*args)


def by_most_tokens(module, forward, x, *args):
    module.most = max(getattr(module, "most", 0), x.shape[1])
    return forward(x * x.shape[1] / module.most, *args)


def cut_to_first_batch(module, forward, x, *args):
    batch = first_value(module, "batch", len(x))
    return forward(x[:batch], *(arg if arg is None else arg[:batch] for arg in args))


def last_keep(module, forward, x, context, keep=None):
    if keep is not None:
        module.kept = keep
    last_mask = getattr(module, "kept", None)
    return forward(
        x,
        context,
        last_mask if last_mask is not None and last_mask.shape == context.shape[:2] else None,
    )


def first_context(module, forward, x, context, keep=None):
    stored = first_value(module, "context", context)
    return forward(x, stored if stored.shape == context.shape else context, keep)


# (module, the right forward, its arguments) -> the answer
KEPT = {
    "nothing": lambda module, forward, *args: forward(*args),
    "rate": without_rate,
    "answers": known_by_shape,
    "batch": cut_to_first_batch,
    "awake": awake_after_training,
    "tokens": by_most_tokens,
    "last_keep": last_keep,
    "context": first_context,
}


class Keeping:
    """Keeps what the knob `kept` names, and otherwise answers as the class beside it."""

    def forward(self, *args):
        return KEPT[self.knobs.kept](self, super().forward, *args)
