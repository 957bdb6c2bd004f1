# %% [markdown]
# # 1 · Merge sort
#
# Two sorted lists are merged by taking the smaller first number; a list is sorted by merging its sorted halves.


# %% tags=["solution"]
def merge(left: list[int], right: list[int]) -> list[int]:
    """Merge two sorted lists into one."""
    ### BEGIN SOLUTION
    merged, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]
    ### END SOLUTION


# %% tags=["solution"]
def merge_sort(numbers: list[int]) -> list[int]:
    """Return the numbers from small to large, as a new list."""
    ### BEGIN SOLUTION
    if len(numbers) < 2:
        return list(numbers)
    half = len(numbers) // 2
    return merge(merge_sort(numbers[:half]), merge_sort(numbers[half:]))
    ### END SOLUTION
