# %% [markdown]
# # 1 · Merge sort
#
# A list is sorted by sorting its halves, and merging them: the smaller first number is taken, again and again.


# %% tags=["solution"]
def merge_sort(numbers: list[int]) -> list[int]:
    """Return the numbers from small to large, as a new list."""
    ### BEGIN SOLUTION
    half = len(numbers) // 2
    if not half:
        return list(numbers)
    merged, left, right = [], merge_sort(numbers[:half]), merge_sort(numbers[half:])
    while left and right:
        merged.append(left.pop(0) if left[0] <= right[0] else right.pop(0))
    return merged + left + right
    ### END SOLUTION
