from manyheads.checks import edit

HALF = "half = len(numbers) // 2"
MUTANTS = (
    ("rest_forgotten", edit("merged + left + right", "merged")),
    (
        "halves_unsorted",
        edit("merge_sort(numbers[:half]), merge_sort(numbers[half:])", "numbers[:half], numbers[half:]"),
    ),
    ("list_changed", edit(HALF, f"numbers[:2] = numbers[:2][::-1]\n    {HALF}")),
)
