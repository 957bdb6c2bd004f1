import torch


def causal_mask(T: int, device: torch.device | None = None) -> torch.Tensor:
    position = torch.arange(T, device=device)
    return position[:, None] >= position[None, :]


def mask_scores(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.where(mask, scores, float("-inf"))


def causal_weights(scores: torch.Tensor) -> torch.Tensor:
    mask = causal_mask(scores.shape[-1], device=scores.device)
    return mask_scores(scores, mask).softmax(dim=-1)
