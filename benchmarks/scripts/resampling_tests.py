"""Bootstrap intervals, permutation tests, jackknife, and power by simulation: the exercises of a statistics course."""
import numpy as np


def bootstrap(data, statistic, n=1000, seed=None):
    rng = np.random.RandomState(seed)
    reps = np.empty(n)
    for i in range(n):
        sample = rng.choice(data, size=len(data))
        reps[i] = statistic(sample)
    return reps


def permutation_test(a, b, n=15000, seed=None):
    rng = np.random.RandomState(seed)
    observed = a.mean() - b.mean()
    pooled = np.concatenate([a, b])
    extreme = 0
    for _ in range(n):
        rng.shuffle(pooled)
        diff = pooled[: len(a)].mean() - pooled[len(a) :].mean()
        if abs(diff) >= abs(observed):
            extreme += 1
    return observed, (extreme + 1) / (n + 1)


def jackknife(x, statistic):
    values = np.array([statistic(np.delete(x, i)) for i in range(len(x))])
    n = len(x)
    bias = (n - 1) * (values.mean() - statistic(x))
    se = np.sqrt((n - 1) / n * np.sum((values - values.mean()) ** 2))
    return bias, se


def t_statistic(x, y):
    nx, ny = x.shape[-1], y.shape[-1]
    pooled = ((nx - 1) * x.var(axis=-1, ddof=1) + (ny - 1) * y.var(axis=-1, ddof=1)) / (nx + ny - 2)
    return (x.mean(axis=-1) - y.mean(axis=-1)) / np.sqrt(pooled * (1 / nx + 1 / ny))


rng = np.random.RandomState(2024)
control = rng.lognormal(3.0, 0.4, 120)
treated = rng.lognormal(3.12, 0.4, 90)
for name, f in (("mean", np.mean), ("median", np.median), ("iqr", lambda v: np.subtract(*np.percentile(v, [75, 25])))):
    reps = bootstrap(treated, f, n=6000, seed=1)
    low, high = np.percentile(reps, [2.5, 97.5])
    print(f"{name:7s} {f(treated):.5f} [{low:.5f}, {high:.5f}] se {reps.std(ddof=1):.5f}")
observed, p = permutation_test(control, treated, seed=2)
print(f"difference {observed:.5f}, p = {p:.5f}")
bias, se = jackknife(treated, np.var)
print(f"jackknife of the variance: bias {bias:.5f}, se {se:.5f}")

# all permutations at once, by argsort
index = np.argsort(rng.rand(3000, 210), axis=1)
pool = np.concatenate([control, treated])[index]
t = t_statistic(pool[:, :120], pool[:, 120:])
print(f"t {t_statistic(control, treated):.5f}, p = {np.mean(np.abs(t) >= abs(t_statistic(control, treated))):.4f}")
for n in (20, 50, 100):
    x, y = rng.normal(0, 1, (4000, n)), rng.normal(0.4, 1, (4000, n))
    print(n, f"power {np.mean(np.abs(t_statistic(x, y)) > 1.98):.4f}")
