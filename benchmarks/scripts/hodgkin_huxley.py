#!/usr/bin/env python
"""Hodgkin-Huxley neuron: one cell point by point, then the f-I curve of many cells at once."""
import numpy as np

Cm = 1.0
gNa, gK, gL = 120.0, 36.0, 0.3
ENa, EK, EL = 50.0, -77.0, -54.387


def alpha_m(V): return 0.1 * (V + 40.0) / (1.0 - np.exp(-(V + 40.0) / 10.0))
def beta_m(V): return 4.0 * np.exp(-(V + 65.0) / 18.0)
def alpha_h(V): return 0.07 * np.exp(-(V + 65.0) / 20.0)
def beta_h(V): return 1.0 / (1.0 + np.exp(-(V + 35.0) / 10.0))
def alpha_n(V): return 0.01 * (V + 55.0) / (1.0 - np.exp(-(V + 55.0) / 10.0))
def beta_n(V): return 0.125 * np.exp(-(V + 65) / 80.0)


def I_inj(t):
    return 10 * (t > 10) - 10 * (t > 35) + 35 * (t > 50) - 35 * (t > 85)


dt = 0.01
t = np.arange(0.0, 100.0, dt)
V = np.zeros(len(t))
m = np.zeros(len(t))
h = np.zeros(len(t))
n = np.zeros(len(t))
V[0], m[0], h[0], n[0] = -65.0, 0.05, 0.6, 0.32
for i in range(len(t) - 1):
    INa = gNa * m[i] ** 3 * h[i] * (V[i] - ENa)
    IK = gK * n[i] ** 4 * (V[i] - EK)
    IL = gL * (V[i] - EL)
    V[i + 1] = V[i] + dt * (I_inj(t[i]) - INa - IK - IL) / Cm
    m[i + 1] = m[i] + dt * (alpha_m(V[i]) * (1.0 - m[i]) - beta_m(V[i]) * m[i])
    h[i + 1] = h[i] + dt * (alpha_h(V[i]) * (1.0 - h[i]) - beta_h(V[i]) * h[i])
    n[i + 1] = n[i] + dt * (alpha_n(V[i]) * (1.0 - n[i]) - beta_n(V[i]) * n[i])

spikes = np.sum((V[:-1] < 0) & (V[1:] >= 0))
print("spikes of one cell:", spikes, " last voltage %.5f" % V[-1], " highest %.4f" % V.max())

currents = np.linspace(0, 30, 61)
v = np.full(currents.shape, -65.0)
mm, hh, nn = 0.05 * np.ones_like(v), 0.6 * np.ones_like(v), 0.32 * np.ones_like(v)
count = np.zeros(len(currents), int)
for i in range(int(200 / 0.02)):
    before = v.copy()
    I = gNa * mm**3 * hh * (v - ENa) + gK * nn**4 * (v - EK) + gL * (v - EL)
    v += 0.02 * (currents - I) / Cm
    mm += 0.02 * (alpha_m(v) * (1 - mm) - beta_m(v) * mm)
    hh += 0.02 * (alpha_h(v) * (1 - hh) - beta_h(v) * hh)
    nn += 0.02 * (alpha_n(v) * (1 - nn) - beta_n(v) * nn)
    count += (before < 0) & (v >= 0)
print("f-I curve:", count[::10] * 5, "Hz; first current that fires: %.1f" % currents[count > 3][0])
