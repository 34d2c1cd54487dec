"""Signal processing by hand: a noisy chirp, FIR filter, short-time Fourier transform, ridge, peaks."""
import numpy as np

FS = 8000


def chirp(seconds, f0, f1):
    t = np.arange(int(seconds * FS)) / FS
    phase = 2 * np.pi * (f0 * t + (f1 - f0) * t**2 / (2 * seconds))
    return t, np.sin(phase + 0.1)


def windowed_sinc(cutoff, taps=101):
    n = np.arange(taps) - (taps - 1) / 2
    h = np.sinc(2 * cutoff / FS * n) * np.hamming(taps)
    return h / h.sum()


def frames_of(x, size, hop):
    for start in range(0, len(x) - size + 1, hop):
        yield x[start:start + size]


def stft(x, size=512, hop=128):
    window = np.hanning(size)
    columns = []
    for frame in frames_of(x, size, hop):
        columns.append(np.fft.rfft(frame * window))
    return np.array(columns).T


def moving_median(x, k=7):
    half = k // 2
    padded = np.pad(x, half, mode="edge")
    return np.array([np.median(padded[i:i + k]) for i in range(len(x))])


def find_peaks(x, height, distance):
    peaks = []
    for i in range(1, len(x) - 1):
        if x[i] > height and x[i] >= x[i - 1] and x[i] > x[i + 1]:
            if not peaks or i - peaks[-1] >= distance:
                peaks.append(i)
            elif x[i] > x[peaks[-1]]:
                peaks[-1] = i
    return peaks


def exponential_smoothing(x, alpha):
    y = np.zeros_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = alpha * x[i] + (1 - alpha) * y[i - 1]
    return y


rng = np.random.default_rng(55)
t, clean = chirp(20.0, 200, 1800)
noisy = clean + 0.4 * np.sin(2 * np.pi * 3000 * t) + 0.6 * rng.standard_normal(len(t))
h = windowed_sinc(2200)
filtered = np.convolve(noisy, h, mode="same")
S = np.abs(stft(filtered))
freqs = np.fft.rfftfreq(512, 1 / FS)
ridge = freqs[np.argmax(S, axis=0)]
smooth = moving_median(ridge)
centre = (np.arange(len(ridge)) * 128 + 256) / FS
slope, offset = np.polyfit(centre, smooth, 1)
print(S.shape, f"slope {slope:.4f} offset {offset:.4f} rms {np.sqrt(np.mean(filtered**2)):.6f}")

envelope = exponential_smoothing(np.abs(filtered * np.sin(2 * np.pi * 1.5 * t) ** 4), 0.005)
peaks = find_peaks(envelope, 0.25, 800)
print("peaks", len(peaks), np.round(np.diff(t[peaks]).mean(), 3), f"{envelope.mean():.6f}")

auto = np.correlate(clean[:4000], clean[:4000], mode="full")[3999:]
crossings = np.where(np.diff(np.sign(clean)))[0]
print("crossings", len(crossings), f"{auto[100]:.5f} {auto[1000]:.5f}")

P = (S**2).mean(axis=1)
P_db = 10 * np.log10(P / P.max())
band = freqs[P_db > -3]
print("band", band.min(), band.max(), f"{np.sum(P * freqs) / np.sum(P):.4f}")
