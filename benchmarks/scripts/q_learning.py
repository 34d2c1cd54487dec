"""Reinforcement learning on a grid with traps: Q-learning, SARSA, value iteration, a bandit."""
import numpy as np

ACTIONS = [(-1, 0), (1, 0), (0, -1), (0, 1)]


class GridWorld:
    def __init__(self, n=8):
        self.n = n
        self.goal = (n - 1, n - 1)
        self.traps = {(1, 3), (2, 3), (3, 3), (5, 1), (5, 5), (6, 2), (4, 6)}

    def reset(self):
        self.pos = (0, 0)
        return self.pos

    def step(self, a):
        di, dj = ACTIONS[a]
        i = min(max(self.pos[0] + di, 0), self.n - 1)
        j = min(max(self.pos[1] + dj, 0), self.n - 1)
        self.pos = (i, j)
        if self.pos == self.goal:
            return self.pos, 10.0, True
        if self.pos in self.traps:
            return self.pos, -5.0, True
        return self.pos, -0.1, False


def epsilon_greedy(Q, s, eps, rng):
    if rng.random() < eps:
        return int(rng.integers(4))
    return int(np.argmax(Q[s]))


def train(method, episodes, rng, alpha=0.2, gamma=0.95):
    env = GridWorld()
    Q = np.zeros((env.n, env.n, 4))
    rewards = []
    for episode in range(episodes):
        eps = max(0.05, 0.5 * 0.995**episode)
        s = env.reset()
        a = epsilon_greedy(Q, s, eps, rng)
        total = 0.0
        for t in range(200):
            s2, r, done = env.step(a)
            a2 = epsilon_greedy(Q, s2, eps, rng)
            if method == "q":
                target = r + (0 if done else gamma * np.max(Q[s2]))
            else:
                target = r + (0 if done else gamma * Q[s2][a2])
            Q[s][a] += alpha * (target - Q[s][a])
            s, a = s2, a2
            total += r
            if done:
                break
        rewards.append(total)
    return Q, np.array(rewards)


def value_iteration(env, gamma=0.95, tol=1e-10):
    V = np.zeros((env.n, env.n))
    sweeps = 0
    while True:
        delta = 0.0
        for i in range(env.n):
            for j in range(env.n):
                if (i, j) == env.goal or (i, j) in env.traps:
                    continue
                best = -np.inf
                for a in range(4):
                    env.pos = (i, j)
                    s2, r, done = env.step(a)
                    best = max(best, r + (0 if done else gamma * V[s2]))
                delta = max(delta, abs(best - V[i, j]))
                V[i, j] = best
        sweeps += 1
        if delta < tol:
            return V, sweeps


def bandit(k, steps, c, rng):
    means = rng.normal(0, 1, k)
    counts, values = np.zeros(k), np.zeros(k)
    regret = 0.0
    for t in range(1, steps + 1):
        if t <= k:
            a = t - 1
        else:
            a = np.argmax(values + c * np.sqrt(np.log(t) / counts))
        r = rng.normal(means[a], 1)
        counts[a] += 1
        values[a] += (r - values[a]) / counts[a]
        regret += means.max() - means[a]
    return regret, counts


rng = np.random.default_rng(21)
for method in ("q", "sarsa"):
    Q, rewards = train(method, 4000, rng)
    greedy = np.argmax(Q, axis=2)
    print(method, f"{rewards[:100].mean():.5f} {rewards[-100:].mean():.5f} {Q.max():.5f}", "".join("^v<>"[a] for a in greedy[0]))
V, sweeps = value_iteration(GridWorld())
print("values", sweeps, f"{V[0, 0]:.6f} {V.sum():.5f}")
regret, counts = bandit(10, 12000, 1.5, rng)
print("bandit", f"{regret:.4f}", counts.astype(int).max())
