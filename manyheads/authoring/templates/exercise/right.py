import @@library


def @@id(x):
    return @@{short}.stack([x, x]).sum(0)  # FILL: a right attempt in another technique; the more of them, the fairer
