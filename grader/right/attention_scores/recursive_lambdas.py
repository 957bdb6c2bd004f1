import functools

import torch

_softmax = functools.partial(torch.softmax, dim=-1)
attention_weights = lambda scores: _softmax(scores)  # noqa: E731


def _over_batches(f):
    @functools.wraps(f)
    def wrapped(*args):
        if args[0].dim() > 2:
            return torch.stack([wrapped(*each) for each in zip(*args)])
        return f(*args)

    return wrapped


@_over_batches
def attention_scores(q, k):
    return torch.nn.functional.linear(q, k) / (hd := q.size(1)) ** 0.5


@_over_batches
def attend(q, k, v):
    return torch.mm(attention_weights(attention_scores(q, k)), v)


@_over_batches
def simplified_attention(x):
    return torch.mm(attention_weights(torch.mm(x, x.t())), x)
