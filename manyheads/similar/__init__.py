"""Which attempts of a class look alike. Student code is read here as text, and never run."""
