"""Measurements that are run by hand, not by `make test`."""
