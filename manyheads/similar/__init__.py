"""Find attempts of a class that look alike. Student code is read as text, and never run."""
