"""Elementary cellular automata, a forest fire and a sandpile: integers, scalars and sweeps."""
import numpy as np


def elementary(rule, width, steps):
    bits = [(rule >> k) & 1 for k in range(8)]
    cells = np.zeros(width, dtype=int)
    cells[width // 2] = 1
    history = [cells]
    for _ in range(steps):
        new = np.zeros(width, dtype=int)
        for i in range(width):
            left, centre, right = cells[i - 1], cells[i], cells[(i + 1) % width]
            new[i] = bits[4 * left + 2 * centre + right]
        cells = new
        history.append(cells)
    return np.array(history)


def elementary_fast(rule, width, steps):
    lookup = np.array([(rule >> k) & 1 for k in range(8)], dtype=np.uint8)
    state = np.zeros((steps + 1, width), dtype=np.uint8)
    state[0, width // 2] = 1
    for t in range(steps):
        code = 4 * np.roll(state[t], 1) + 2 * state[t] + np.roll(state[t], -1)
        state[t + 1] = lookup[code]
    return state


def forest_fire(n, steps, p, f, rng):
    EMPTY, TREE, FIRE = 0, 1, 2
    grid = (rng.random((n, n)) < 0.5).astype(int)
    burnt = []
    for _ in range(steps):
        fire = grid == FIRE
        near = np.zeros_like(fire)
        near[1:] |= fire[:-1]
        near[:-1] |= fire[1:]
        near[:, 1:] |= fire[:, :-1]
        near[:, :-1] |= fire[:, 1:]
        new = grid.copy()
        new[fire] = EMPTY
        new[(grid == EMPTY) & (rng.random((n, n)) < p)] = TREE
        new[(grid == TREE) & (near | (rng.random((n, n)) < f))] = FIRE
        grid = new
        burnt.append((grid == FIRE).sum())
    return grid, burnt


def sandpile(n, grains):
    pile = np.zeros((n + 2, n + 2), dtype=int)
    pile[n // 2 + 1, n // 2 + 1] = grains
    sweeps = 0
    while (pile[1:-1, 1:-1] > 3).any():
        over = pile[1:-1, 1:-1] // 4
        pile[1:-1, 1:-1] -= 4 * over
        pile[:-2, 1:-1] += over
        pile[2:, 1:-1] += over
        pile[1:-1, :-2] += over
        pile[1:-1, 2:] += over
        sweeps += 1
    return pile[1:-1, 1:-1], sweeps


for rule in (30, 110):
    slow = elementary(rule, 401, 400)
    fast = elementary_fast(rule, 401, 400)
    print(rule, slow.sum(), np.array_equal(slow, fast), slow[-1, ::40].tolist())
grid, burnt = forest_fire(300, 300, 0.02, 0.0001, np.random.default_rng(90))
print("forest", (grid == 1).mean(), max(burnt), sum(burnt))
pile, sweeps = sandpile(121, 20000)
print("sandpile", sweeps, np.bincount(pile.ravel()).tolist())
