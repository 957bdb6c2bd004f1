# %% [markdown]
# # 1 · A tokenizer
#
# Each word becomes its place in a list of words: "to be or not to be" is 0 1 2 3 0 1.


# %% tags=["solution"]
def encode(text: str, words: list[str]) -> list[int]:
    """Return the place of each word of the text, or len(words) where it is not among them. Capitals do not count."""
    ### BEGIN SOLUTION
    places = {word: place for place, word in enumerate(words)}
    return [places.get(word, len(words)) for word in text.lower().split()]
    ### END SOLUTION


# %% tags=["solution"]
def decode(places: list[int], words: list[str]) -> str:
    """Return the words at these places, with a blank between two."""
    ### BEGIN SOLUTION
    return " ".join(words[place] for place in places)
    ### END SOLUTION
