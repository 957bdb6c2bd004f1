def encode(text, words):
    return [words.index(word) if word in words else len(words) for word in text.lower().split()]


def decode(places, words):
    text = ""
    for place in places:
        text += " " * bool(text) + words[place]
    return text
