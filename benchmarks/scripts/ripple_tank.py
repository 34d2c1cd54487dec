# 2-d wave equation in a tank with a wall that has two slits
import numpy as np

N = 240
c = 1.0
dx = 1.0 / N
dt = 0.5 * dx / c
u_now = np.zeros([N, N])
u_old = np.zeros([N, N])
k = (c * dt / dx) ** 2

wall = np.zeros((N, N), dtype=bool)
wall[:, N // 3] = True
wall[N // 2 - 30 : N // 2 - 20, N // 3] = False
wall[N // 2 + 25 : N // 2 + 40, N // 3] = False

damping = np.ones((N, N))
for edge in range(20):
    factor = 1 - 0.015 * (20 - edge) ** 2 / 20.0
    damping[edge, :] = np.minimum(damping[edge, :], factor)
    damping[-1 - edge, :] = np.minimum(damping[-1 - edge, :], factor)
    damping[:, edge] = np.minimum(damping[:, edge], factor)
    damping[:, -1 - edge] = np.minimum(damping[:, -1 - edge], factor)

screen = np.zeros(N)
t = 0.0
for n in range(900):
    lap = -4 * u_now
    lap[1:, :] += u_now[:-1, :]
    lap[:-1, :] += u_now[1:, :]
    lap[:, 1:] += u_now[:, :-1]
    lap[:, :-1] += u_now[:, 1:]
    u_new = 2 * u_now - u_old + k * lap
    u_new[wall] = 0
    u_new *= damping
    u_new[:, 22] = np.sin(2 * np.pi * 20 * t)
    u_old = u_now
    u_now = u_new
    t = t + dt
    if n > 500:
        screen += u_now[:, int(0.85 * N)] ** 2

peaks = np.where((screen[1:-1] > screen[:-2]) & (screen[1:-1] > screen[2:]))[0] + 1
print(len(peaks), screen.sum().round(8), np.abs(u_now).max().round(6))
