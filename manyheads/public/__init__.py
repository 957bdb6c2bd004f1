"""Checks without a reference: compare an attempt's answers on public inputs with recorded ones."""
