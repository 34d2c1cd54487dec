"""Time-dependent Schroedinger equation: a packet meets a barrier (split-step Fourier)."""
import numpy as np


class Packet:
    def __init__(self, x, psi0, V, hbar=1.0, m=1.9, t=0.0):
        self.x, psi0, self.V = map(np.asarray, (x, psi0, V))
        self.N = self.x.size
        self.hbar, self.m, self.t = hbar, m, t
        self.dx = self.x[1] - self.x[0]
        self.k = 2 * np.pi * np.fft.fftfreq(self.N, self.dx)
        self.psi = psi0 / np.sqrt((np.abs(psi0) ** 2).sum() * self.dx)
        self._dt = None

    def set_dt(self, dt):
        if dt != self._dt:
            self._dt = dt
            self.half = np.exp(-0.5j * self.V / self.hbar * dt)
            self.full = self.half * self.half
            self.kinetic = np.exp(-0.5j * self.hbar / self.m * self.k**2 * dt)

    def time_step(self, dt, steps=1):
        self.set_dt(dt)
        self.psi *= self.half
        for _ in range(steps - 1):
            spectrum = np.fft.fft(self.psi)
            spectrum *= self.kinetic
            self.psi = np.fft.ifft(spectrum)
            self.psi *= self.full
        spectrum = np.fft.fft(self.psi)
        spectrum *= self.kinetic
        self.psi = np.fft.ifft(spectrum)
        self.psi *= self.half
        self.t += dt * steps

    @property
    def probability(self):
        return np.abs(self.psi) ** 2

    def mean(self, f):
        return (f * self.probability).sum() * self.dx


def gauss(x, a, x0, k0):
    return (a * np.sqrt(np.pi)) ** (-0.5) * np.exp(-0.5 * ((x - x0) * 1.0 / a) ** 2 + 1j * x * k0)


def theta(x):
    x = np.asarray(x)
    y = np.zeros(x.shape)
    y[x > 0] = 1.0
    return y


N = 2**11
x = 0.1 * (np.arange(N) - 0.5 * N)
V0 = 1.5
barrier = V0 * (theta(x) - theta(x - 4.0))
barrier[x < -98] = 1e6
barrier[x > 98] = 1e6
for energy in (0.4, 0.8, 1.2):
    k0 = np.sqrt(2 * 1.9 * energy * V0)
    p = Packet(x, gauss(x, 6.0, -70.0, k0), barrier)
    for frame in range(100):
        p.time_step(0.02, 60)
    through = p.mean(theta(x - 4.0))
    print("E/V0 = %.1f: through %.6f, <x> = %.5f, norm %.8f" % (energy, through, p.mean(x), p.mean(1.0)))
