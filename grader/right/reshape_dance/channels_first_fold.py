import torch

def split_heads(x, n_head):
    B, T, C = x.size()
    hd, left = divmod(C, n_head)
    if left != 0:
        raise ValueError(f"n_head ({n_head}) has to divide C ({C})")
    # put the channels in front of the tokens: then a plain reshape is honest
    cf = x.permute(0, 2, 1).contiguous()
    return cf.view(B, n_head, hd, T).mT

def merge_heads(y):
    B, nh, T, hd = y.size()
    cf = y.mT.reshape(B, nh * hd, T)
    return cf.permute(0, 2, 1)
