import torch
import torch.nn as nn
import math

class CausalSelfAttention(nn.Module):

    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super(CausalSelfAttention, self).__init__()
        head_size = n_embd / n_head
        if head_size != int(head_size):
            raise ValueError("n_embd " + str(n_embd) + " / n_head " + str(n_head) + " is not whole")
        self.head_size = int(head_size)
        self.n_head = n_head
        self.n_embd = n_embd
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)
        self.dropout = nn.Dropout(dropout)
        mask = torch.zeros(block_size, block_size)
        for i in range(min(block_size, 64)):
            mask[i, i + 1:] = 1.0
        for i in range(64, block_size):
            mask[i, i + 1:] = 1.0
        self.register_buffer("mask", mask)

    def forward(self, x):
        T = x.shape[1]
        if T > self.mask.shape[0]:
            raise ValueError("T is " + str(T) + ", block_size is " + str(self.mask.shape[0]))
        everything = self.qkv(x)
        collected = []
        for h in range(self.n_head):
            a = h * self.head_size
            z = a + self.head_size
            q = everything[..., a:z]
            k = everything[..., self.n_embd + a:self.n_embd + z]
            v = everything[..., 2 * self.n_embd + a:2 * self.n_embd + z]
            att = q @ k.transpose(1, 2) / math.sqrt(self.head_size)
            att = torch.masked_fill(att, self.mask[:T, :T] == 1.0, -math.inf)
            att = self.dropout(torch.softmax(att, dim=2))
            collected.append(att @ v)
        return self.dropout(self.proj(torch.cat(collected, dim=2)))


def gpt2_attention(size):
    names = ["small", "medium", "large", "xl"]
    widths = [768, 1024, 1280, 1600]
    heads = [12, 16, 20, 25]
    if size not in names:
        raise ValueError("I only know " + " ".join(names))
    i = names.index(size)
    return CausalSelfAttention(widths[i], heads[i], 1024)
