"""A multi-layer perceptron with layer objects and Adam, in single precision."""
import numpy as np


class Dense:
    def __init__(self, n_in, n_out, rng):
        self.W = (rng.standard_normal((n_in, n_out)) * np.sqrt(2 / n_in)).astype(np.float32)
        self.b = np.zeros(n_out, dtype=np.float32)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, grad):
        self.dW = self.x.T @ grad
        self.db = grad.sum(axis=0)
        return grad @ self.W.T

    def parameters(self):
        return [(self.W, self.dW), (self.b, self.db)]


class ReLU:
    def forward(self, x):
        self.mask = x > 0
        return x * self.mask

    def backward(self, grad):
        return grad * self.mask

    def parameters(self):
        return []


class Dropout:
    def __init__(self, p, rng):
        self.p, self.rng, self.training = p, rng, True

    def forward(self, x):
        if not self.training:
            return x
        self.mask = (self.rng.random(x.shape) > self.p).astype(np.float32) / np.float32(1 - self.p)
        return x * self.mask

    def backward(self, grad):
        return grad * self.mask

    def parameters(self):
        return []


class Adam:
    def __init__(self, lr=1e-3, b1=0.9, b2=0.999, eps=1e-8):
        self.lr, self.b1, self.b2, self.eps, self.t = lr, b1, b2, eps, 0
        self.m, self.v = {}, {}

    def step(self, params):
        self.t += 1
        for k, (p, g) in enumerate(params):
            m = self.m.setdefault(k, np.zeros_like(p))
            v = self.v.setdefault(k, np.zeros_like(p))
            m *= self.b1
            m += (1 - self.b1) * g
            v *= self.b2
            v += (1 - self.b2) * g**2
            m_hat = m / (1 - self.b1**self.t)
            v_hat = v / (1 - self.b2**self.t)
            p -= self.lr * m_hat / (np.sqrt(v_hat) + self.eps)


def softmax_loss(logits, y):
    z = logits - logits.max(axis=1, keepdims=True)
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    loss = -np.log(p[np.arange(len(y)), y] + 1e-9).mean()
    p[np.arange(len(y)), y] -= 1
    return loss, p / len(y)


def spirals(n, classes, rng):
    X = np.zeros((n * classes, 2), dtype=np.float32)
    y = np.zeros(n * classes, dtype=int)
    for c in range(classes):
        ix = range(n * c, n * (c + 1))
        r = np.linspace(0.0, 1, n)
        t = np.linspace(c * 4, (c + 1) * 4, n) + rng.standard_normal(n) * 0.2
        X[ix] = np.c_[r * np.sin(t), r * np.cos(t)]
        y[ix] = c
    return X, y


rng = np.random.default_rng(12)
X, y = spirals(1000, 3, rng)
net = [Dense(2, 64, rng), ReLU(), Dense(64, 64, rng), ReLU(), Dropout(0.05, rng), Dense(64, 3, rng)]
opt = Adam(5e-3)
for epoch in range(40):
    order = rng.permutation(len(X))
    total = 0.0
    for start in range(0, len(X), 50):
        sel = order[start:start + 50]
        out = X[sel]
        for layer in net:
            out = layer.forward(out)
        loss, grad = softmax_loss(out, y[sel])
        for layer in reversed(net):
            grad = layer.backward(grad)
        opt.step([pair for layer in net for pair in layer.parameters()])
        total += loss * len(sel)
    if epoch in (0, 3):
        print("epoch %d loss %.2f" % (epoch, total / len(X)))
net[4].training = False
out = X
for layer in net:
    out = layer.forward(out)
accuracy = (out.argmax(axis=1) == y).mean()
print("accuracy above 0.95:", accuracy > 0.95, out.dtype, "updates", opt.t)
