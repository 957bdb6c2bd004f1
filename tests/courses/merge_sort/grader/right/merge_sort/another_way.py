from bisect import insort


def merge_sort(numbers):
    row = []
    for number in numbers:
        insort(row, number)
    return row
