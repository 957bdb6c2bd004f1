"""Programs for those who change the engine."""
