"""An epidemic among walkers in a square: state codes, masks, a dataclass of parameters, a curve at the end."""
from dataclasses import dataclass, field

import numpy as np

SUSCEPTIBLE, EXPOSED, INFECTED, RECOVERED = 0, 1, 2, 3


@dataclass
class Parameters:
    people: int = 2200
    size: float = 100.0
    radius: float = 2.2
    p_infect: float = 0.35
    incubation: int = 6
    illness: int = 18
    speed: float = 0.9
    first: int = 8


@dataclass
class World:
    par: Parameters
    rng: np.random.Generator
    pos: np.ndarray = field(init=False)
    state: np.ndarray = field(init=False)
    clock: np.ndarray = field(init=False)

    def __post_init__(self):
        n = self.par.people
        self.pos = self.rng.uniform(0, self.par.size, (n, 2))
        self.state = np.zeros(n, dtype=np.int8)
        self.clock = np.zeros(n, dtype=int)
        sick = self.rng.choice(n, self.par.first, replace=False)
        self.state[sick] = INFECTED

    def move(self):
        angle = self.rng.uniform(0, 2 * np.pi, self.par.people)
        step = self.par.speed * np.column_stack([np.cos(angle), np.sin(angle)])
        step[self.state == INFECTED] *= 0.3
        self.pos += step
        outside = (self.pos < 0) | (self.pos > self.par.size)
        self.pos = np.clip(self.pos, 0, self.par.size)
        return outside.any(axis=1).sum()

    def infect(self):
        sick = np.flatnonzero(self.state == INFECTED)
        well = np.flatnonzero(self.state == SUSCEPTIBLE)
        if len(sick) == 0 or len(well) == 0:
            return 0
        d2 = ((self.pos[well][:, None, :] - self.pos[sick][None, :, :]) ** 2).sum(axis=2)
        contacts = (d2 < self.par.radius**2).sum(axis=1)
        p = 1 - (1 - self.par.p_infect) ** contacts
        caught = well[self.rng.random(len(well)) < p]
        self.state[caught] = EXPOSED
        self.clock[caught] = 0
        return len(caught)

    def advance(self):
        self.clock += 1
        turn = (self.state == EXPOSED) & (self.clock >= self.par.incubation)
        self.state[turn] = INFECTED
        self.clock[turn] = 0
        done = (self.state == INFECTED) & (self.clock >= self.par.illness)
        self.state[done] = RECOVERED

    def counts(self):
        return np.bincount(self.state, minlength=4)


def deterministic(beta, sigma, gamma, n, i0, days, dt=0.05):
    s, e, i, r = n - i0, 0.0, float(i0), 0.0
    out = np.empty((days, 4))
    for day in range(days):
        for _ in range(int(1 / dt)):
            new = beta * s * i / n
            s, e, i, r = s - dt * new, e + dt * (new - sigma * e), i + dt * (sigma * e - gamma * i), r + dt * gamma * i
        out[day] = s, e, i, r
    return out


world = World(Parameters(), np.random.default_rng(2020))
curve = []
bumps = new = 0
for day in range(150):
    bumps += world.move()
    new += world.infect()
    world.advance()
    curve.append(world.counts())
curve = np.array(curve)
ode = deterministic(0.35, 1 / 6, 1 / 18, 2200, 8, 150)
print("peak", curve[:, INFECTED].max(), "on day", curve[:, INFECTED].argmax(), "never ill", curve[-1, SUSCEPTIBLE], "bumps", bumps, "new", new)
print("equations: peak %.3f on day %d, left %.3f" % (ode[:, 2].max(), ode[:, 2].argmax(), ode[-1, 0]))
