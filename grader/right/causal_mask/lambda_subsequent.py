import torch
from torch.nn import Transformer

causal_mask = lambda T, device=None: Transformer.generate_square_subsequent_mask(T, device=device) == 0  # noqa: E731
mask_scores = lambda scores, mask: scores.where(mask, scores.new_tensor(-torch.inf))  # noqa: E731
causal_weights = lambda scores: (  # noqa: E731
    mask_scores(scores, causal_mask((T := scores.shape[-1]), device=scores.device))
    .float()
    .softmax(-1)
    .to(scores.dtype)
    .reshape(*scores.shape[:-1], T)
)
