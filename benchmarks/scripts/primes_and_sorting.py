"""First weeks of a programming course, with arrays: sieve, sorting, Collatz, Pascal, magic squares."""
import numpy as np


def sieve(n):
    is_prime = np.ones(n + 1, dtype=bool)
    is_prime[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if is_prime[i]:
            is_prime[i * i :: i] = False
    return np.nonzero(is_prime)[0]


def bubble_sort(a):
    a = a.copy()
    n = len(a)
    swaps = 0
    for i in range(n):
        swapped = False
        for j in range(n - i - 1):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
                swaps += 1
                swapped = True
        if not swapped:
            break
    return a, swaps


def insertion_sort(a):
    a = np.array(a)
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return a


def merge_sort(a):
    if len(a) <= 1:
        return a
    mid = len(a) // 2
    left, right = merge_sort(a[:mid]), merge_sort(a[mid:])
    out = np.empty(len(a), dtype=a.dtype)
    i = j = 0
    for k in range(len(a)):
        if j >= len(right) or (i < len(left) and left[i] <= right[j]):
            out[k] = left[i]
            i += 1
        else:
            out[k] = right[j]
            j += 1
    return out


def binary_search(a, x):
    lo, hi = 0, len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        if a[mid] < x:
            lo = mid + 1
        else:
            hi = mid
    return lo


def collatz_lengths(n):
    lengths = np.zeros(n, dtype=np.int64)
    lengths[1] = 1
    for start in range(2, n):
        x, steps = start, 0
        while x >= n or lengths[x] == 0:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            steps += 1
        lengths[start] = lengths[x] + steps
    return lengths


def magic_square(n):
    M = np.zeros((n, n), dtype=int)
    i, j = 0, n // 2
    for k in range(1, n * n + 1):
        M[i, j] = k
        ni, nj = (i - 1) % n, (j + 1) % n
        if M[ni, nj]:
            ni, nj = (i + 1) % n, j
        i, j = ni, nj
    return M


primes = sieve(2_000_000)
gaps = np.diff(primes)
print(len(primes), primes[-1], gaps.max(), np.sum(gaps == 2))

np.random.seed(6)
data = np.random.randint(0, 10000, 1100)
a, swaps = bubble_sort(data)
b = insertion_sort(data)
c = merge_sort(np.random.permutation(20000))
print(swaps, (a == b).all(), (np.sort(data) == a).all(), (c == np.arange(20000)).all())
hits = sum(binary_search(primes, x) for x in range(0, 20000, 7))
lengths = collatz_lengths(60000)
M = magic_square(31)
print(hits, lengths.argmax(), lengths.max(), M.sum(axis=0)[0], np.trace(M), np.linalg.matrix_rank(M))

pascal = np.zeros((60, 60), dtype=object)
pascal[:, 0] = 1
for i in range(1, 60):
    for j in range(1, i + 1):
        pascal[i, j] = pascal[i - 1, j - 1] + pascal[i - 1, j]
print(pascal[59].sum() == 2**59, pascal[40, 20], int((pascal % 2 == 1).sum()))
