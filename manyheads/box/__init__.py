"""The box: the isolated place that an attempt runs in."""
