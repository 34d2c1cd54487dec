# Flow past a cylinder with the lattice Boltzmann method (D2Q9).
# Everything at module level, one time loop, progress printed now and then.
import numpy as np

nx, ny = 320, 80
tau = 0.57
steps = 400

cx = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
cy = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
w = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
opposite = [0, 3, 4, 1, 2, 7, 8, 5, 6]

rng = np.random.default_rng(11)
f = np.ones((9, ny, nx)) + 0.01 * rng.standard_normal((9, ny, nx))
X, Y = np.meshgrid(range(nx), range(ny))
f[1] += 1.8 + 0.15 * np.cos(2 * np.pi * X / nx * 3)
rho = f.sum(axis=0)
for i in range(9):
    f[i] *= 10.0 / rho

cylinder = (X - nx / 5) ** 2 + (Y - ny / 2) ** 2 < (ny / 9) ** 2

drag = []
for it in range(steps):
    # streaming
    for i, (ax, ay) in enumerate(zip(cx, cy)):
        f[i] = np.roll(f[i], ax, axis=1)
        f[i] = np.roll(f[i], ay, axis=0)

    # what hits the cylinder comes back
    boundary = f[:, cylinder]
    boundary = boundary[opposite, :]

    rho = np.sum(f, 0)
    ux = np.sum(f * cx[:, None, None], 0) / rho
    uy = np.sum(f * cy[:, None, None], 0) / rho

    feq = np.zeros(f.shape)
    for i, (ax, ay, wi) in enumerate(zip(cx, cy, w)):
        cu = ax * ux + ay * uy
        feq[i] = rho * wi * (1 + 3 * cu + 9 * cu ** 2 / 2 - 3 * (ux ** 2 + uy ** 2) / 2)

    f += -(1.0 / tau) * (f - feq)
    f[:, cylinder] = boundary
    drag.append((boundary[1] - boundary[3]).sum())

    if it % 100 == 0:
        print("step", it, "mean speed %.6f" % np.sqrt(ux ** 2 + uy ** 2).mean())

ux[cylinder] = 0
uy[cylinder] = 0
vorticity = (np.roll(ux, -1, axis=0) - np.roll(ux, 1, axis=0)) - (np.roll(uy, -1, axis=1) - np.roll(uy, 1, axis=1))
print("vorticity %.6f" % np.abs(vorticity).mean(), "drag %.5f" % np.mean(drag[-50:]), "mass %.4f" % f.sum())
