"""The sandbox: the isolated place that an attempt runs in."""
