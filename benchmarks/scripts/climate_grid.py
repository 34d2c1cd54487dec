"""Temperatures on a globe, from made-up monthly files: gaps, anomalies, weights, trends, patterns, dates."""
import numpy as np

months = np.arange("1960-01", "2010-01", dtype="datetime64[M]")
lat = np.arange(-88, 90, 4.0)
lon = np.arange(2, 360, 4.0)


def read_month(month, rng):
    """One made-up file: a field with holes."""
    k = (month - np.datetime64("1960-01")).astype(int)
    season = 12 * np.sin(np.deg2rad(lat))[:, None] * np.cos(2 * np.pi * (k % 12 - 6) / 12)
    base = 28 - 50 * np.abs(np.sin(np.deg2rad(lat)))[:, None] ** 1.5
    warming = 0.0016 * k * (1 + 0.8 * (np.abs(lat)[:, None] > 60))
    wave = 0.8 * np.sin(np.deg2rad(2 * lon))[None, :] * np.cos(2 * np.pi * k / 43.0)
    field = base + season + warming + wave + rng.normal(0, 1.2, (len(lat), len(lon)))
    field[rng.random(field.shape) < 0.05] = np.nan
    if k % 97 == 0:
        field[:, 10:20] = -999.0
    return field.astype(np.float32)


rng = np.random.default_rng(1850)
cube = np.empty((len(months), len(lat), len(lon)), dtype=np.float32)
for i, month in enumerate(months):
    cube[i] = read_month(month, rng)
cube[cube == -999.0] = np.nan
print(cube.shape, cube.dtype, int(np.isnan(cube).sum()))

month_index = months.astype(int) % 12
years = months.astype("datetime64[Y]").astype(int) + 1970
climatology = np.stack([np.nanmean(cube[(month_index == m) & (years < 1990)], axis=0) for m in range(12)])
anomaly = cube - climatology[month_index]

weights = np.cos(np.deg2rad(lat))[:, None] * np.ones(len(lon))
series = np.zeros(len(months))
for i in range(len(months)):
    valid = ~np.isnan(anomaly[i])
    series[i] = np.average(anomaly[i][valid], weights=weights[valid])
annual = np.array([series[years == y].mean() for y in np.unique(years)])
trend = np.polyfit(np.unique(years), annual, 1)[0]
print("trend per decade %.4f" % (10 * trend), "warmest", np.unique(years)[annual.argmax()], "last ten years %.4f" % annual[-10:].mean())

filled = np.where(np.isnan(anomaly), 0, anomaly).astype(float)
X = (filled - filled.mean(axis=0)) * np.sqrt(weights)
X = X.reshape(len(months), -1)
C = X @ X.T / X.shape[1]
values, vectors = np.linalg.eigh(C)
share = values[::-1] / values.sum()
pattern = np.abs(vectors[:, -1] @ X).reshape(len(lat), len(lon))
print("patterns", np.round(share[:3], 4), "strongest at lat", lat[pattern.mean(axis=1).argmax()])
zonal = np.nanmean(np.nanmean(cube, axis=2), axis=0)
print("zonal %.3f %.3f" % (zonal.max(), zonal.min()), "hot months", int((np.nanmax(cube, axis=(1, 2)) > 33).sum()))
spectrum = np.abs(np.fft.rfft(vectors[:, -1] - vectors[:, -1].mean()))
print("period %.3f months" % (len(months) / spectrum[1:].argmax().clip(1)))
