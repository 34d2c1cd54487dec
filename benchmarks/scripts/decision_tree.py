"""Decision tree and a small forest from scratch: recursion, dictionaries, sorting, masks."""
import numpy as np


def gini(y):
    _, counts = np.unique(y, return_counts=True)
    p = counts / len(y)
    return 1 - np.sum(p**2)


def best_split(X, y, features):
    best = (None, None, 0.0)
    parent = gini(y)
    n = len(y)
    for j in features:
        order = np.argsort(X[:, j], kind="stable")
        xs, ys = X[order, j], y[order]
        left = np.cumsum(np.eye(3)[ys], axis=0)[:-1]
        right = left[-1] + np.eye(3)[ys[-1]] - left
        nl = np.arange(1, n)
        nr = n - nl
        gl = 1 - np.sum((left / nl[:, None]) ** 2, axis=1)
        gr = 1 - np.sum((right / nr[:, None]) ** 2, axis=1)
        gain = parent - (nl * gl + nr * gr) / n
        gain[xs[1:] == xs[:-1]] = -1
        k = np.argmax(np.round(gain, 10))
        if gain[k] > best[2] + 1e-10:
            best = (j, 0.5 * (xs[k] + xs[k + 1]), gain[k])
    return best


def grow(X, y, depth, rng, max_depth=8, min_size=5, n_features=None):
    counts = np.bincount(y, minlength=3)
    if depth == max_depth or len(y) < min_size or counts.max() == len(y):
        return {"label": int(counts.argmax()), "n": len(y)}
    features = range(X.shape[1]) if n_features is None else rng.choice(X.shape[1], n_features, replace=False)
    j, threshold, gain = best_split(X, y, features)
    if j is None:
        return {"label": int(counts.argmax()), "n": len(y)}
    mask = X[:, j] <= threshold
    return {
        "feature": j,
        "threshold": threshold,
        "left": grow(X[mask], y[mask], depth + 1, rng, max_depth, min_size, n_features),
        "right": grow(X[~mask], y[~mask], depth + 1, rng, max_depth, min_size, n_features),
    }


def predict_one(tree, x):
    while "label" not in tree:
        tree = tree["left"] if x[tree["feature"]] <= tree["threshold"] else tree["right"]
    return tree["label"]


def predict(tree, X):
    return np.array([predict_one(tree, x) for x in X])


def leaves(tree):
    return 1 if "label" in tree else leaves(tree["left"]) + leaves(tree["right"])


rng = np.random.default_rng(31)
n = 4000
X = rng.normal(size=(n, 6))
y = ((X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5 * X[:, 3])).astype(int)
flip = rng.random(n) < 0.05
y[flip] = rng.integers(0, 3, flip.sum())
train, test = np.split(rng.permutation(n), [2800])
tree = grow(X[train], y[train], 0, rng)
single = np.mean(predict(tree, X[test]) == y[test])
votes = np.zeros((len(test), 3), int)
for k in range(25):
    boot = rng.integers(0, len(train), len(train))
    t = grow(X[train][boot], y[train][boot], 0, rng, max_depth=9, n_features=3)
    p = predict(t, X[test])
    votes[np.arange(len(test)), p] += 1
forest = np.mean(votes.argmax(axis=1) == y[test])
confusion = np.zeros((3, 3), int)
for a, b in zip(y[test], votes.argmax(axis=1)):
    confusion[a, b] += 1
print(leaves(tree), f"{single:.4f} {forest:.4f}", confusion.ravel().tolist())
