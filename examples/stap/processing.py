"""From a data cube to detections: pulse compression, Doppler filters, adaptive weights, a threshold.

Nothing here knows of anything but NumPy.  ``n`` counts degrees of freedom: the channels in a Doppler bin and
its neighbours; ``d`` Doppler bins, ``r`` range gates.
"""

from dataclasses import dataclass

import numpy as np

from .scene import steering, waveform


@dataclass(frozen=True)
class Settings:
    """The settings of a processor.

    Parameters
    ----------
    angle : float
        Spatial frequency that the beam looks at.
    neighbours : int
        Doppler bins on each side that are weighted together with a bin.
    false_alarms : float
        The designed probability of a detection where there is only noise.
    training, guard : int
        Cells on each side of a cell that tell its noise, and those next to it that do not.
    loading : float
        What is added to the diagonal of a covariance matrix, relative to the noise.
    """

    angle: float = 0.0
    neighbours: int = 1
    false_alarms: float = 1e-6
    training: int = 16
    guard: int = 2
    loading: float = 0.1

    def __post_init__(self):
        if not 0 < self.false_alarms < 1:
            raise ValueError(f"false_alarms={self.false_alarms}: must be a probability, between 0 and 1")
        if self.training < 1 or self.guard < 0 or self.neighbours < 0:
            raise ValueError("training cells must be 1 or more, guard cells and neighbours 0 or more")


class Processor:
    """The filters for cubes of one scene's shape and waveform.

    Raises
    ------
    ValueError
        If there are fewer range gates than training cells, or Doppler bins than neighbours.
    """

    def __init__(self, scene, settings=Settings()):
        if scene.gates < 2 * (settings.training + settings.guard) + 1:
            raise ValueError(f"{scene.gates} range gates are fewer than the training cells of one of them")
        if scene.pulses < 2 * settings.neighbours + 1:
            raise ValueError(
                f"{scene.pulses} pulses are fewer than {2 * settings.neighbours + 1} adjacent bins"
            )
        self.settings, self.gates = settings, scene.gates
        self.length = scene.samples
        pulse = waveform(scene)
        # Of unit energy: noise keeps its power, and an echo gains the root of the chirp's samples.
        self.matched = (np.conj(np.fft.fft(pulse, self.length)) / np.linalg.norm(pulse)).astype(np.complex64)
        taper = np.hanning(scene.pulses + 2)[1:-1]
        self.taper = (taper / np.sqrt(np.mean(taper**2))).astype(np.float32)
        self.target = self._target(scene)
        self.load = settings.loading * np.eye(len(self.target))

    def _target(self, scene):
        """Return the response, n numbers, of a bin and its neighbours to a target of amplitude 1 in it."""
        tone = np.fft.fft(self.taper.astype(float), norm="ortho")
        near = range(-self.settings.neighbours, self.settings.neighbours + 1)
        space = steering(self.settings.angle, scene.channels)
        return np.concatenate([tone[k] * space for k in near])

    def compress(self, cube):
        """Return the cube after pulse compression: each pulse's samples correlated with the sent pulse."""
        spectra = np.fft.fft(cube, axis=2, norm="ortho")
        return np.fft.ifft(spectra * self.matched, axis=2, norm="ortho")[:, :, : self.gates]

    def doppler(self, compressed):
        """Return the Doppler spectrum: Doppler bins x channels x range gates."""
        return np.fft.fft(compressed.transpose(1, 0, 2) * self.taper[:, None, None], axis=0, norm="ortho")

    def snapshots(self, bins):
        """Return the snapshots, d x n x r: each bin together with its neighbours."""
        near = range(-self.settings.neighbours, self.settings.neighbours + 1)
        return np.concatenate([np.roll(bins, -k, axis=0) for k in near], axis=1)

    def covariance(self, x):
        """Return the covariance matrices, d x n x n: means over all range gates."""
        return np.einsum("dnr,dmr->dnm", x, x.conj()) / x.shape[2]

    def weights(self, covariance):
        """Return the weights, d x n, that pass the target and minimise the remaining power."""
        loaded = covariance.astype(complex) + self.load
        return np.linalg.solve(loaded, np.broadcast_to(self.target[:, None], (*loaded.shape[:2], 1)))[:, :, 0]

    def statistic(self, weights, x):
        """Return the adaptive matched filter's output, d x r, with mean about 1 where there is no target."""
        output = np.einsum("dn,dnr->dr", weights.conj().astype(np.complex64), x)
        gain = np.einsum("dn,n->d", weights.conj(), self.target).real
        return np.abs(output) ** 2 / gain[:, None].astype(np.float32)

    def threshold(self, power):
        """Return the detection threshold, d x r, from the cells on both sides (CA-CFAR).

        Exact for exponentially distributed powers that are independent; beyond the ends the line goes round.
        """
        far = self.settings.training + self.settings.guard
        r = power.shape[1]
        line = np.concatenate([power[:, -far:], power, power[:, :far]], axis=1)
        noise = np.zeros_like(power)
        for k in range(self.settings.guard + 1, far + 1):
            noise += line[:, far - k : far - k + r] + line[:, far + k : far + k + r]
        cells = 2 * self.settings.training
        return noise * np.float32(self.settings.false_alarms ** (-1 / cells) - 1)

    def __call__(self, cube):
        """Return the powers d x r of a cube, and a mask of the detections."""
        x = self.snapshots(self.doppler(self.compress(cube)))
        power = self.statistic(self.weights(self.covariance(x)), x)
        return power, power > self.threshold(power)


def beamform(processor, cube, scene):
    """Return the power, d x r, of channels and pulses added in phase for the beam's direction.

    A target in the middle of the beam and of a bin comes out ``channels * pulses`` times as large as it is in
    one channel of one compressed pulse.
    """
    bins = np.fft.fft(processor.compress(cube), axis=1)
    return np.einsum("n,ndr->dr", steering(processor.settings.angle, scene.channels).conj(), bins)


def peaks(power, detections):
    """Return the bins and gates of detections that are local maxima: one cell for each target."""
    height = np.pad(power, ((1, 1), (0, 0)), mode="wrap")
    height = np.pad(height, ((0, 0), (1, 1)), constant_values=-np.inf)
    rows, columns = power.shape
    highest = np.ones(power.shape, bool)
    for i in range(3):
        for j in range(3):
            highest &= power >= height[i : i + rows, j : j + columns]
    return np.argwhere(highest & detections)
