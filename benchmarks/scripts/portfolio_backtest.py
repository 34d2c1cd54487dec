"""Made-up share prices: indicators, a crossover strategy day by day, drawdown, value at risk, the efficient frontier."""
import numpy as np

TRADING_DAYS = 252


def sma(prices, window):
    c = np.cumsum(np.insert(prices, 0, 0.0))
    out = np.full(len(prices), np.nan)
    out[window - 1:] = (c[window:] - c[:-window]) / window
    return out


def ema(prices, span):
    alpha = 2 / (span + 1)
    out = np.empty_like(prices)
    out[0] = prices[0]
    for i in range(1, len(prices)):
        out[i] = alpha * prices[i] + (1 - alpha) * out[i - 1]
    return out


def rsi(prices, n=14):
    delta = np.diff(prices)
    up, down = np.where(delta > 0, delta, 0), np.where(delta < 0, -delta, 0)
    out = np.full(len(prices), np.nan)
    au, ad = up[:n].mean(), down[:n].mean()
    for i in range(n, len(delta)):
        au = (au * (n - 1) + up[i]) / n
        ad = (ad * (n - 1) + down[i]) / n
        out[i + 1] = 100 - 100 / (1 + au / ad)
    return out


def drawdown(equity):
    peak = np.maximum.accumulate(equity)
    return (equity - peak) / peak


def backtest(prices, fast, slow, fee=0.0005):
    f, s = sma(prices, fast), sma(prices, slow)
    cash, shares = 10_000.0, 0.0
    equity = np.zeros(len(prices))
    trades = 0
    for i in range(len(prices)):
        if not np.isnan(s[i]):
            if f[i] > s[i] and shares == 0:
                shares = cash * (1 - fee) / prices[i]
                cash = 0.0
                trades += 1
            elif f[i] < s[i] and shares > 0:
                cash = shares * prices[i] * (1 - fee)
                shares = 0.0
                trades += 1
        equity[i] = cash + shares * prices[i]
    return equity, trades


rng = np.random.default_rng(1987)
days, assets = 10 * TRADING_DAYS, 8
corr = 0.3 + 0.7 * np.eye(assets)
vol = np.linspace(0.12, 0.4, assets) / np.sqrt(TRADING_DAYS)
drift = np.linspace(0.03, 0.12, assets) / TRADING_DAYS
L = np.linalg.cholesky(corr)
returns = drift + (rng.standard_t(5, (days, assets)) / np.sqrt(5 / 3)) @ L.T * vol
prices = 100 * np.exp(np.cumsum(returns, axis=0))

for a in (0, 4, 7):
    p = prices[:, a]
    r = rsi(p)
    macd = ema(p, 12) - ema(p, 26)
    print(a, f"{p[-1]:.4f} {np.nanmean(r):.5f} {np.nanmax(r):.4f} {macd.std():.6f} {drawdown(p).min():.5f}")

best = (-np.inf, None)
for fast in range(5, 40, 5):
    for slow in range(50, 200, 15):
        equity, trades = backtest(prices[:, 4], fast, slow)
        if equity[-1] > best[0]:
            best = (equity[-1], (fast, slow, trades))
print("best", f"{best[0]:.4f}", best[1])

mu, cov = returns.mean(axis=0) * TRADING_DAYS, np.cov(returns.T) * TRADING_DAYS
w = rng.dirichlet(np.ones(assets), 150_000)
ret, risk = w @ mu, np.sqrt(np.einsum("ij,jk,ik->i", w, cov, w))
sharpe = ret / risk
k = np.argmax(sharpe)
inv = np.linalg.solve(cov, np.ones(assets))
mvp = inv / inv.sum()
losses = np.sort(returns @ mvp)
print(f"sharpe {sharpe[k]:.5f} risk {risk[k]:.5f}; least risk {np.sqrt(mvp @ cov @ mvp):.6f}; VaR {-np.quantile(losses, 0.01):.6f} CVaR {-losses[:25].mean():.6f}")
