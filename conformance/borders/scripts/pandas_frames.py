"""A script that puts arrays of a loop into pandas data frames, and uses columns as arrays."""

import numpy as np
import pandas as pd


def smooth(values, times):
    for _ in range(times):
        values[1:-1] = 0.25 * values[:-2] + 0.5 * values[1:-1] + 0.25 * values[2:]
    return values


rng = np.random.default_rng(1)
time = np.arange(30_000)
signal = np.cumsum(rng.normal(size=30_000))
frame = pd.DataFrame({"t": time, "raw": signal, "smooth": smooth(signal.copy(), 60)})
print(frame.describe().round(5).loc[["mean", "std", "max"]].to_string())

rows = []
state = np.zeros(20_000)
for step in range(40):
    state = 0.9 * state + rng.normal(size=state.size)
    rows.append({"step": step, "mean": state.mean(), "high": (state > 2).sum(), "last": state[-1]})
    if step % 20 == 0:
        frame[f"state{step}"] = pd.Series(state)
table = pd.DataFrame(rows).set_index("step")
print(table.dtypes.astype(str).tolist(), table["mean"].abs().sum(), table["high"].tolist()[-3:])
state[:] = -1
print(frame["state20"].isna().sum(), frame["state20"].std())

frame["label"] = np.where(frame["smooth"] > frame["raw"], "above", "below")
grouped = frame.groupby("label")
print(grouped["raw"].apply(lambda s: np.sqrt(np.mean(s.to_numpy() ** 2))).round(6).to_dict())
print(grouped["smooth"].transform(lambda s: s - np.median(s)).abs().sum().round(4))

column = frame["raw"].to_numpy(copy=True)
for k in range(30):
    column *= 1.001
    column += np.sin(time * 1e-3 + k)
frame["new"] = column
column[:10] = np.nan
print(frame["new"].iloc[:3].tolist(), np.isnan(column).sum(), type(frame["new"].values).__name__)
print(pd.cut(frame["new"], bins=np.linspace(frame["new"].min(), frame["new"].max(), 6)).value_counts().sum())
print(frame.rolling(7, on="t")["raw"].mean().iloc[[6, 100, -1]].tolist())

ranks = pd.Series(column).rank(na_option="keep")
print(
    np.nanmean(ranks),
    pd.isna(column).sum(),
    pd.api.types.is_float_dtype(column),
    pd.api.types.is_array_like(column),
)
wide = pd.DataFrame(column[:29_400].reshape(-1, 300).T)
wide.iloc[:, 3] = np.arange(300)
print(
    wide.shape, wide.sum(axis=1).iloc[-1], np.add(wide, 1).iloc[0, 3], (np.ones(98) @ wide.to_numpy().T)[:2]
)
