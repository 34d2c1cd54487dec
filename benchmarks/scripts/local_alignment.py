"""Smith-Waterman with affine gaps, cell by cell, and the spectrum of k-mers of the same sequences."""
import numpy as np

BASES = "ACGT"


def random_sequence(n, rng):
    return "".join(rng.choice(list(BASES), n))


def mutate(seq, rate, rng):
    out = []
    for base in seq:
        r = rng.random()
        if r < rate:
            out.append(BASES[rng.integers(4)])
        elif r < 1.5 * rate:
            continue
        elif r < 2 * rate:
            out.extend([base, BASES[rng.integers(4)]])
        else:
            out.append(base)
    return "".join(out)


def smith_waterman(a, b, match=2, mismatch=-3, gap_open=-5, gap_extend=-2):
    n, m = len(a), len(b)
    H = np.zeros((n + 1, m + 1), dtype=int)
    E = np.full((n + 1, m + 1), -10**6)
    F = np.full((n + 1, m + 1), -10**6)
    best = 0
    where = (0, 0)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            E[i, j] = max(E[i, j - 1] + gap_extend, H[i, j - 1] + gap_open)
            F[i, j] = max(F[i - 1, j] + gap_extend, H[i - 1, j] + gap_open)
            score = match if a[i - 1] == b[j - 1] else mismatch
            H[i, j] = max(0, H[i - 1, j - 1] + score, E[i, j], F[i, j])
            if H[i, j] > best:
                best = H[i, j]
                where = (i, j)
    return best, where, H


def kmer_counts(seq, k):
    codes = np.array([BASES.index(c) for c in seq])
    index = np.zeros(len(codes) - k + 1, dtype=int)
    for i in range(k):
        index = index * 4 + codes[i:len(codes) - k + 1 + i]
    return np.bincount(index, minlength=4**k)


def dotplot(a, b, window=11, stringency=8):
    x = np.frombuffer(a.encode(), dtype=np.uint8)
    y = np.frombuffer(b.encode(), dtype=np.uint8)
    same = (x[:, None] == y[None, :]).astype(int)
    hits = np.zeros((len(x) - window + 1, len(y) - window + 1), dtype=int)
    for w in range(window):
        hits += same[w:w + hits.shape[0], w:w + hits.shape[1]]
    return hits >= stringency


rng = np.random.default_rng(23)
first = random_sequence(640, rng)
second = mutate(first[60:560], 0.06, rng) + random_sequence(80, rng)
best, where, H = smith_waterman(first, second)
profile = H.max(axis=0)
print(len(first), len(second), best, where, profile.sum())
for k in (2, 3, 5):
    u, v = kmer_counts(first, k), kmer_counts(second, k)
    cosine = u @ v / np.sqrt((u @ u) * (v @ v))
    print(k, f"{cosine:.6f}", np.minimum(u, v).sum())
plot = dotplot(first, second)
print(plot.sum(), np.trace(plot, offset=-60), int(plot.any(axis=1).sum()))
