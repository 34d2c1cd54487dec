"""Energy levels of 1-d wells: finite differences and dense eigenvalues, a sweep over a parameter."""
import numpy as np


def hamiltonian(V, dx):
    n = len(V)
    H = np.zeros((n, n))
    for i in range(n):
        H[i, i] = 1.0 / dx**2 + V[i]
        if i > 0:
            H[i, i - 1] = -0.5 / dx**2
        if i < n - 1:
            H[i, i + 1] = -0.5 / dx**2
    return H


def levels(potential, n=340, L=7.0, count=5):
    x = np.linspace(-L, L, n)
    H = hamiltonian(potential(x), x[1] - x[0])
    E, psi = np.linalg.eigh(H)
    density = psi[:, :count] ** 2
    spread = np.sqrt((x[:, None] ** 2 * density).sum(axis=0) - ((x[:, None] * density).sum(axis=0)) ** 2)
    return E[:count], spread


print("harmonic", np.round(levels(lambda x: 0.5 * x**2)[0], 5))
table = []
for g in np.linspace(0, 1, 9):
    E, spread = levels(lambda x: 0.5 * x**2 + g * x**4)
    table.append(np.concatenate([[g], E, spread[:2]]))
table = np.array(table)
for row in table[::4]:
    print(" ".join(f"{v:.5f}" for v in row))
double = levels(lambda x: 0.25 * (x**2 - 4) ** 2, count=4)[0]
print("splitting", f"{double[1] - double[0]:.6f}", f"{double[3] - double[2]:.6f}")

# second order perturbation theory in the basis of oscillator states
size = 60
a = np.diag(np.sqrt(np.arange(1, size)), 1)
X = (a + a.T) / np.sqrt(2)
X4 = np.linalg.matrix_power(X, 4)
E0 = np.arange(size) + 0.5
second = [sum(X4[m, n] ** 2 / (E0[n] - E0[m]) for m in range(size - 6) if m != n) for n in range(3)]
print("perturbation", np.round(np.diag(X4)[:3], 6), np.round(second, 5))
