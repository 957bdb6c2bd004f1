def encode(text, words):
    return [words.index(word) if word in words else len(words) for word in text.lower().split()]


def decode(places, words):
    return "".join(f"{words[place]} " for place in places).rstrip()
