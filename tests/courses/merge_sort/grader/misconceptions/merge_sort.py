from manyheads.checks import edit

HALF = "half = len(numbers) // 2"
MUTANTS = (
    ("rest_forgotten", edit("merged + left[i:] + right[j:]", "merged")),
    (
        "halves_unsorted",
        edit("merge(merge_sort(numbers[:half]), merge_sort(numbers[half:]))", "merge(numbers[:half], numbers[half:])"),
    ),
    ("list_changed", edit(HALF, f"numbers[0], numbers[1] = numbers[1], numbers[0]\n    {HALF}")),
)
