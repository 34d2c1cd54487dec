"""The range-Doppler picture, before and after the removal of clutter and jammer."""

import numpy as np


def draw(path, plain, adapted, found):
    """Save a picture of powers d x r without and with adaptive weights, with circles around detections.

    Raises
    ------
    ModuleNotFoundError
        Without matplotlib.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    middle = len(plain) // 2
    for axes, power, title in (
        (left, plain, "beam without adaptive weights"),
        (right, adapted, "adaptive weights; circles are detections"),
    ):
        # At most some 300 columns, each the largest of a few gates.
        few = -(-power.shape[1] // 300)
        columns = np.pad(power, ((0, 0), (0, -power.shape[1] % few))).reshape(len(power), -1, few).max(axis=2)
        level = 10 * np.log10(np.roll(columns, middle, axis=0) + 1e-12)
        low, high = np.percentile(level, 5), level.max()
        extent = (-0.5, few * level.shape[1] - 0.5, -middle - 0.5, len(level) - middle - 0.5)
        image = axes.imshow(level, aspect="auto", origin="lower", extent=extent, vmin=low, vmax=high)
        axes.set(xlabel="range gate", title=title)
        figure.colorbar(image, ax=axes, label="dB")
    left.set_ylabel("Doppler bin")
    for bin, gate in found:
        signed = (bin + middle) % len(plain) - middle
        right.plot(gate, signed, "o", markersize=14, fillstyle="none", color="white", markeredgewidth=1.5)
    figure.savefig(path, dpi=72)
