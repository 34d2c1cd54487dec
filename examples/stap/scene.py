"""The simulated signal of the antenna: echoes of targets and of the ground, a jammer, receiver noise.

A linear array of channels half a wavelength apart looks sideways from an aircraft, so that ground at the
spatial frequency ``f`` has the Doppler frequency ``slope * f``.  Frequencies are in cycles per channel and
per pulse, powers relative to the noise in one element of a cube, times in samples.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Target:
    """A moving object that reflects the radar's pulses.

    `doppler` is the number of a bin, of as many as there are pulses; `amplitude` the modulus of its echo in
    one channel, pulse and sample.
    """

    gate: int
    doppler: int
    angle: float = 0.0
    amplitude: float = 0.1


@dataclass(frozen=True)
class Scene:
    """The antenna, the waveform, and the sources of the received signal.

    Parameters
    ----------
    channels, pulses, samples : int
        The shape of a cube.
    chirp : int
        Samples in the transmitted pulse, whose frequency rises linearly over the whole band.
    targets : tuple of Target
    clutter, jammer, noise : float
        Powers; 0 is without.
    slope : float
        Doppler frequency of the ground for each unit of spatial frequency.
    patches : int
        Pieces of ground at each range.
    jammer_angle : float
        Spatial frequency of the jammer.

    Raises
    ------
    ValueError
        For a cube of nothing, a pulse longer than the samples, targets outside of it or two in one cell.
    """

    channels: int = 16
    pulses: int = 64
    samples: int = 960
    chirp: int = 65
    targets: tuple[Target, ...] = (Target(400, 12),)
    clutter: float = 1e3
    jammer: float = 1e2
    noise: float = 1.0
    slope: float = 1.0
    patches: int = 180
    jammer_angle: float = 0.31

    def __post_init__(self):
        shape = self.channels, self.pulses, self.samples
        if min(*shape, self.chirp, self.patches) < 1:
            raise ValueError(
                f"a cube of {' x '.join(map(str, shape))} with {self.patches} patches has no elements"
            )
        if self.chirp > self.samples:
            raise ValueError(f"a pulse of {self.chirp} samples does not fit into {self.samples}")
        if min(self.clutter, self.jammer, self.noise) < 0:
            raise ValueError("a power is negative")
        if len(self.targets) > self.gates * self.pulses:
            raise ValueError(f"{len(self.targets)} targets are more than {self.gates * self.pulses} cells")
        cells = set()
        for target in self.targets:
            if not (0 <= target.gate < self.gates and 0 <= target.doppler < self.pulses):
                raise ValueError(
                    f"{target} is outside of {self.gates} range gates and {self.pulses} Doppler bins"
                )
            if (target.gate, target.doppler) in cells:
                raise ValueError(f"two targets are in gate {target.gate}, bin {target.doppler}")
            cells.add((target.gate, target.doppler))

    @property
    def gates(self) -> int:
        """The number of range gates: delays for which the whole echo is received."""
        return self.samples - self.chirp + 1


def waveform(scene):
    """Return the transmitted pulse: a chirp of modulus 1."""
    t = np.arange(scene.chirp) - (scene.chirp - 1) / 2
    return np.exp(1j * np.pi * t * t / scene.chirp)


def steering(frequency, n):
    """Return the steering vector: a plane wave at ``n`` channels or pulses."""
    return np.exp(2j * np.pi * frequency * np.arange(n))


def cube(scene, seed):
    """Return a random data cube, complex64: channels x pulses x samples."""
    rng = np.random.default_rng(seed)
    shape = scene.channels, scene.pulses, scene.samples
    received = np.zeros(shape, complex)
    length = scene.samples + scene.chirp - 1
    pulse = np.fft.fft(waveform(scene), length)
    if scene.clutter:
        angles = np.sin(np.linspace(-np.pi / 2, np.pi / 2, scene.patches)) / 2
        space = np.stack([steering(f, scene.channels) for f in angles])
        time = np.stack([steering(scene.slope * f, scene.pulses) for f in angles])
        ground = (time[:, None, :] * space[:, :, None]).reshape(scene.patches, -1)
        level = np.sqrt(scene.clutter / scene.patches / scene.chirp)
        amplitudes = level * complex_normal(rng, (scene.patches, scene.samples))
        echoes = np.fft.ifft(np.fft.fft(amplitudes, length) * pulse)[:, : scene.samples]
        received += (ground.T @ echoes).reshape(shape)
    for target in scene.targets:
        wave = np.outer(
            steering(target.angle, scene.channels), steering(target.doppler / scene.pulses, scene.pulses)
        )
        echo = target.amplitude * wave[:, :, None] * waveform(scene)
        received[:, :, target.gate : target.gate + scene.chirp] += echo
    if scene.jammer:
        wave = steering(scene.jammer_angle, scene.channels)[:, None, None]
        received += np.sqrt(scene.jammer) * wave * complex_normal(rng, shape[1:])
    if scene.noise:
        received += np.sqrt(scene.noise) * complex_normal(rng, shape)
    return received.astype(np.complex64)


def complex_normal(rng, shape):
    """Return circular complex normal random numbers of variance 1."""
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)
