"""Gray-Scott patterns as a generator of frames; the caller looks at each."""
import numpy as np


def laplacian(Z):
    return (np.roll(Z, 1, 0) + np.roll(Z, -1, 0) + np.roll(Z, 1, 1) + np.roll(Z, -1, 1) - 4 * Z)


def frames(n, feed, kill, steps_per_frame, Du=0.16, Dv=0.08, seed=3):
    rng = np.random.default_rng(seed)
    U = np.ones((n, n))
    V = np.zeros((n, n))
    for _ in range(12):
        r, c = rng.integers(10, n - 20, 2)
        U[r:r + 10, c:c + 10] = 0.5
        V[r:r + 10, c:c + 10] = 0.25
    U += 0.02 * rng.random((n, n))
    V += 0.02 * rng.random((n, n))
    while True:
        for _ in range(steps_per_frame):
            uvv = U * V * V
            U += Du * laplacian(U) - uvv + feed * (1 - U)
            V += Dv * laplacian(V) + uvv - (feed + kill) * V
        yield V


def describe(frame, bins=16):
    hist, _ = np.histogram(frame, bins=bins, range=(0, 0.5))
    p = hist / hist.sum()
    p = p[p > 0]
    return frame.mean(), -(p * np.log2(p)).sum()


for name, feed, kill in [("spots", 0.035, 0.065), ("stripes", 0.060, 0.062)]:
    for k, frame in enumerate(frames(160, feed, kill, 90)):
        mean, entropy = describe(frame)
        if k in (0, 4):
            print(name, k, f"{mean:.6f} {entropy:.5f}")
        if k == 8:
            break
    print(name, f"{frame.max():.6f}", int((frame > 0.2).sum()))
