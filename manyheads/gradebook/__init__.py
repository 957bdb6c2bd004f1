"""nbgrader: its gradebook, its autograde. Reads results and released notebooks; needs the extra `manyheads[nbgrader]`."""
