def mha_by_loop(mha, x):
    return mha(x)
