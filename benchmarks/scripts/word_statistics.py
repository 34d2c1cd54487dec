"""Statistics of a made-up text: counts, Zipf's exponent, tf-idf, latent semantics, a Markov chain of letters."""
import string
from collections import Counter, defaultdict

import numpy as np

rng = np.random.default_rng(4)
syllables = ["ka", "lo", "mi", "ter", "sun", "ra", "pel", "do", "vi", "nor", "eth", "qu"]
vocabulary = ["".join(rng.choice(syllables, rng.integers(1, 4))) for _ in range(700)]
vocabulary = sorted(set(vocabulary))
V = len(vocabulary)
base = 1.0 / np.arange(1, V + 1)
documents = []
for d in range(150):
    topic = np.ones(V)
    topic[rng.permutation(V)[:40] if d % 5 == 0 else np.arange(d % 5, V, 5)[:60]] *= 15
    p = base * topic
    p /= p.sum()
    documents.append([vocabulary[i] for i in rng.choice(V, rng.integers(250, 600), p=p)])

text = " ".join(" ".join(words) for words in documents)
counts = Counter(text.split())
ranked = np.array(sorted(counts.values(), reverse=True))
slope, _ = np.polyfit(np.log(np.arange(1, 101)), np.log(ranked[:100]), 1)
print(len(text), len(counts), ranked[:5], f"zipf {slope:.5f}")

index = {w: i for i, w in enumerate(sorted(counts))}
tf = np.zeros((len(documents), len(index)))
for d, words in enumerate(documents):
    for w in words:
        tf[d, index[w]] += 1
tf /= tf.sum(axis=1, keepdims=True)
idf = np.log(len(documents) / (1 + (tf > 0).sum(axis=0)))
tfidf = tf * idf
norms = np.linalg.norm(tfidf, axis=1, keepdims=True)
similarity = (tfidf / norms) @ (tfidf / norms).T
same = np.equal.outer(np.arange(150) % 5, np.arange(150) % 5)
np.fill_diagonal(same, False)
off = ~np.eye(150, dtype=bool)
print(f"same topic {similarity[same].mean():.5f}, others {similarity[~same & off].mean():.5f}")

U, s, Vt = np.linalg.svd(tfidf - tfidf.mean(axis=0), full_matrices=False)
print("singular values", np.round(s[:5], 5), f"share {np.sum(s[:5] ** 2) / np.sum(s**2):.5f}")

letters = string.ascii_lowercase + " "
table = np.zeros((27, 27))
codes = [letters.index(c) for c in text]
for a, b in zip(codes[:-1], codes[1:]):
    table[a, b] += 1
P = (table + 0.01) / (table + 0.01).sum(axis=1, keepdims=True)
stationary = np.ones(27) / 27
for _ in range(200):
    stationary = stationary @ P
entropy = -np.sum(stationary[:, None] * P * np.log2(P))
print(f"entropy {entropy:.6f} bits; space {stationary[-1]:.6f}")

pairs = defaultdict(int)
for words in documents:
    for a, b in zip(words, words[1:]):
        pairs[a, b] += 1
top = sorted(pairs.items(), key=lambda kv: (-kv[1], kv[0]))[:3]
print(top, np.mean(list(pairs.values())).round(5))
