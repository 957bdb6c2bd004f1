"""nbgrader: fill its gradebook, and run its commands. Needs the extra `manyheads[nbgrader]`."""
