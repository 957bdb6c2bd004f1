def merge(left, right):
    if not left or not right:
        return [*left, *right]
    (first, *rest), other = (left, right) if left[0] <= right[0] else (right, left)
    return [first, *merge(rest, other)]


def merge_sort(numbers):
    rows = [[number] for number in numbers]
    while len(rows) > 1:
        rows = [merge(*rows[:2]), *rows[2:]]
    return [number for row in rows for number in row]
