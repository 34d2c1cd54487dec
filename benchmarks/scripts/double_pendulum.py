"""Double pendulum: one generic RK4 for functions of small vectors, energy, Lyapunov exponent, Poincare section."""
import numpy as np

G, L1, L2, M1, M2 = 9.81, 1.0, 1.0, 1.0, 1.0


def derivs(t, s):
    dydx = np.zeros_like(s)
    dydx[0] = s[1]
    delta = s[2] - s[0]
    den1 = (M1 + M2) * L1 - M2 * L1 * np.cos(delta) * np.cos(delta)
    dydx[1] = (M2 * L1 * s[1] * s[1] * np.sin(delta) * np.cos(delta) + M2 * G * np.sin(s[2]) * np.cos(delta)
               + M2 * L2 * s[3] * s[3] * np.sin(delta) - (M1 + M2) * G * np.sin(s[0])) / den1
    dydx[2] = s[3]
    den2 = (L2 / L1) * den1
    dydx[3] = (-M2 * L2 * s[3] * s[3] * np.sin(delta) * np.cos(delta) + (M1 + M2) * G * np.sin(s[0]) * np.cos(delta)
               - (M1 + M2) * L1 * s[1] * s[1] * np.sin(delta) - (M1 + M2) * G * np.sin(s[2])) / den2
    return dydx


def rk4(f, t, y, h):
    k1 = f(t, y)
    k2 = f(t + h / 2, y + h / 2 * k1)
    k3 = f(t + h / 2, y + h / 2 * k2)
    k4 = f(t + h, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def energy(s):
    th1, w1, th2, w2 = s.T
    kin = 0.5 * M1 * (L1 * w1) ** 2 + 0.5 * M2 * ((L1 * w1) ** 2 + (L2 * w2) ** 2 + 2 * L1 * L2 * w1 * w2 * np.cos(th1 - th2))
    pot = -(M1 + M2) * G * L1 * np.cos(th1) - M2 * G * L2 * np.cos(th2)
    return kin + pot


def trajectory(y0, h, n):
    out = np.empty((n + 1, 4))
    out[0] = y0
    for i in range(n):
        out[i + 1] = rk4(derivs, i * h, out[i], h)
    return out


small = trajectory(np.radians([5.0, 0.0, 8.0, 0.0]), 0.01, 6000)
E = energy(small)
crossings = np.where((small[:-1, 0] < 0) & (small[1:, 0] >= 0))[0]
print("small swing: drift %.3e" % np.round(np.ptp(E) / abs(E[0]), 9), "periods", np.round(np.diff(crossings * 0.01)[:4], 3), "%.6f" % small[-1, 2])

# two neighbours, pulled together again after each stretch
a = np.radians([120.0, 0.0, -10.0, 0.0])
b = a + np.array([1e-6, 0, 0, 0])
d0 = np.linalg.norm(b - a)
growth = []
for k in range(200):
    for i in range(10):
        a = rk4(derivs, 0, a, 0.005)
        b = rk4(derivs, 0, b, 0.005)
    d = np.linalg.norm(b - a)
    growth.append(np.log(d / d0))
    b = a + (b - a) * d0 / d
print("exponent %.2f" % (np.sum(growth) / (200 * 10 * 0.005)), "energy %.5f" % energy(a[None])[0])

# many starts at once: which flip within a time?
angles = np.linspace(-3, 3, 60)
T1, T2 = np.meshgrid(angles, angles)
s = np.stack([T1.ravel(), np.zeros(T1.size), T2.ravel(), np.zeros(T1.size)])
flipped = np.zeros(T1.size, dtype=bool)
for i in range(300):
    s = rk4(derivs, 0, s, 0.01)
    flipped |= np.abs(s[2]) > np.pi
print("flipped", flipped.sum())
