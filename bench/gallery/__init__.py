"""The gallery of silent bugs: what each misconception costs a small language model that learns with it."""
