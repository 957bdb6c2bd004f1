"""Grade submissions: run hidden checks and decide every verdict, without importing student code."""
