"""Hidden Markov model: forward-backward with scaling, Baum-Welch, Viterbi (the dishonest casino)."""
import numpy as np


class HMM:
    def __init__(self, start, trans, emit):
        self.pi = np.array(start, float)
        self.A = np.array(trans, float)
        self.B = np.array(emit, float)

    def sample(self, T, rng):
        states = np.empty(T, int)
        symbols = np.empty(T, int)
        s = rng.choice(len(self.pi), p=self.pi)
        for t in range(T):
            states[t] = s
            symbols[t] = rng.choice(self.B.shape[1], p=self.B[s])
            s = rng.choice(len(self.pi), p=self.A[s])
        return states, symbols

    def forward(self, obs):
        T, N = len(obs), len(self.pi)
        alpha = np.zeros((T, N))
        scale = np.zeros(T)
        alpha[0] = self.pi * self.B[:, obs[0]]
        scale[0] = alpha[0].sum()
        alpha[0] /= scale[0]
        for t in range(1, T):
            alpha[t] = (alpha[t - 1] @ self.A) * self.B[:, obs[t]]
            scale[t] = alpha[t].sum()
            alpha[t] /= scale[t]
        return alpha, scale

    def backward(self, obs, scale):
        T, N = len(obs), len(self.pi)
        beta = np.ones((T, N))
        for t in range(T - 2, -1, -1):
            beta[t] = self.A @ (self.B[:, obs[t + 1]] * beta[t + 1]) / scale[t + 1]
        return beta

    def fit(self, obs, iterations):
        logs = []
        for _ in range(iterations):
            alpha, scale = self.forward(obs)
            beta = self.backward(obs, scale)
            gamma = alpha * beta
            gamma /= gamma.sum(axis=1, keepdims=True)
            xi = np.zeros_like(self.A)
            for t in range(len(obs) - 1):
                x = alpha[t][:, None] * self.A * (self.B[:, obs[t + 1]] * beta[t + 1])[None, :]
                xi += x / x.sum()
            self.pi = gamma[0]
            self.A = xi / xi.sum(axis=1, keepdims=True)
            for k in range(self.B.shape[1]):
                self.B[:, k] = gamma[obs == k].sum(axis=0) / gamma.sum(axis=0)
            logs.append(np.log(scale).sum())
        return logs

    def viterbi(self, obs):
        T, N = len(obs), len(self.pi)
        with np.errstate(divide="ignore"):
            lA, lB = np.log(self.A), np.log(self.B)
            delta = np.log(self.pi) + lB[:, obs[0]]
        back = np.zeros((T, N), int)
        for t in range(1, T):
            cand = delta[:, None] + lA
            back[t] = cand.argmax(axis=0)
            delta = cand.max(axis=0) + lB[:, obs[t]]
        path = [int(delta.argmax())]
        for t in range(T - 1, 0, -1):
            path.append(int(back[t, path[-1]]))
        return np.array(path[::-1])


rng = np.random.default_rng(8)
true = HMM([0.5, 0.5], [[0.95, 0.05], [0.1, 0.9]], [[1 / 6] * 6, [0.1] * 5 + [0.5]])
states, rolls = true.sample(3000, rng)
model = HMM([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]], [[0.16, 0.16, 0.17, 0.17, 0.17, 0.17], [0.12, 0.12, 0.12, 0.12, 0.12, 0.4]])
logs = model.fit(rolls, 30)
path = model.viterbi(rolls)
print(f"log-likelihood {logs[0]:.4f} {logs[-1]:.4f}; agreement {np.mean(path == states):.4f}; six {model.B[1, 5]:.5f}; stay {np.diag(model.A).sum():.5f}")
