import torch

def window_mask(T_q: int, T_k: int, window: int, device: torch.device | None = None) -> torch.Tensor:
    if window < 1:
        raise ValueError(f"window = {window}")
    if T_q > T_k:
        raise ValueError(f"T_q = {T_q}, T_k = {T_k}")
    m = torch.zeros(T_k, T_k, dtype=torch.bool, device=device)
    for back in range(min(window, T_k)):
        m |= torch.diag_embed(torch.ones(T_k - back, dtype=torch.bool, device=device), offset=-back)
    return m[T_k - T_q :, :]

def local_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, window: int) -> torch.Tensor:
    *_, T_q, hd = q.shape
    T_k = k.shape[-2]
    allowed = window_mask(T_q, T_k, window, q.device).expand(*q.shape[:-2], T_q, T_k)
    s = (q @ k.movedim(-1, -2)) * hd**-0.5
    return s.masked_fill(allowed.logical_not(), float("-inf")).softmax(dim=-1) @ v
