"""``python -m examples.stap``: detects targets in a data cube, and measures cubes a second."""

import argparse
from dataclasses import replace

import numpy as np

import dcarray as dc

from .picture import draw
from .processing import Processor, Settings, beamform, peaks
from .runs import detect, false_alarms, rates, times
from .scene import Scene, Target, cube


def main():
    """Detect the targets of a cube, check gain and false alarms, and measure the speed."""
    parser = argparse.ArgumentParser(prog="python -m examples.stap", description=__doc__)
    parser.add_argument("--channels", type=int, default=16)
    parser.add_argument("--pulses", type=int, default=64)
    parser.add_argument("--samples", type=int, default=960)
    parser.add_argument("--chirp", type=int, default=65, help="samples in the transmitted pulse")
    parser.add_argument(
        "--target", nargs=3, action="append", metavar=("GATE", "DOPPLER", "AMPLITUDE"),
        help="a target; may be given several times (default: 400 12 0.1)",
    )  # fmt: skip
    parser.add_argument("--false-alarms", type=float, default=1e-6, help="the designed rate (default: 1e-6)")
    parser.add_argument("--device", default="cpu", help=f"numpy, or one of {', '.join(dc.devices())}, auto")
    parser.add_argument("--ranks", type=int, help="MPI ranks to measure, too (default: 2 on the processor)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement; 0: none")
    parser.add_argument(
        "--brief", action="store_true", help="measure a cube in this process, and nothing else"
    )
    parser.add_argument("--no-numpy", action="store_true", help="leave NumPy out of that")
    parser.add_argument("--alarm-cubes", type=int, default=10, help="cubes without targets, for false alarms")
    parser.add_argument("--picture", help="a file for the range-Doppler picture: .png, .svg, .pdf")
    args = parser.parse_args()
    try:
        targets = tuple(
            Target(int(g), int(d), amplitude=float(a)) for g, d, a in args.target or [(400, 12, 0.1)]
        )
        scene = Scene(args.channels, args.pulses, args.samples, args.chirp, targets)
        settings = Settings(false_alarms=args.false_alarms)
        processor = Processor(scene, settings)
        device = None if args.device == "numpy" else args.device
        host = args.device in ("numpy", "cpu")
        ranks = (2 if host else 1) if args.ranks is None else args.ranks
        if ranks < 1:
            raise ValueError(f"--ranks {ranks}: there is one rank at least")
        if ranks > 1 and not host:
            raise ValueError(
                f"--ranks {ranks}: several ranks compute on their processors, not on {args.device}"
            )
        if args.brief:
            show_times(*times(scene, args.device, not args.no_numpy), args.device)
        else:
            show(scene, processor, device, ranks, args)
    except (ValueError, RuntimeError, ModuleNotFoundError) as error:
        parser.exit(2, f"{error}\n")


def show(scene, processor, device, ranks, args):
    """Print detections, checks and speed."""
    one = cube(scene, 1)
    power, found = detect(processor, one, device)
    cells = peaks(power, found)
    print(
        f"cube: {scene.channels} channels x {scene.pulses} pulses x {scene.samples} samples, on {args.device}"
    )
    print(f"targets: {', '.join(f'gate {t.gate}, bin {t.doppler}' for t in scene.targets)}")
    for bin, gate in cells:
        print(f"found:   gate {gate}, bin {bin}: {10 * np.log10(power[bin, gate]):.1f} dB above the noise")
    if not len(cells):
        print("found:   nothing")
    designed = scene.channels * scene.pulses
    print(f"beamforming gain with noise off: {gain(scene):.4f}, channels x pulses = {designed}")
    if args.alarm_cubes > 0:
        rate = replace(processor.settings, false_alarms=max(1e-3, processor.settings.false_alarms))
        count, designed = false_alarms(scene, rate, args.alarm_cubes, device)
        print(f"false alarms at a rate of {rate.false_alarms:g}: {count}, designed {designed:.1f}")
    if args.picture:
        plain = np.abs(beamform(processor, one, scene)) ** 2
        draw(args.picture, plain / np.median(plain), power, cells)
        print(f"picture: {args.picture}")
    if args.seconds > 0:
        print(f"{'':32s} cubes/s")
        for name, rate in rates(scene, args.device if device else "cpu", args.seconds, ranks).items():
            print(f"{name:32s} {rate:7.1f}", flush=True)


def show_times(seconds, moved, device):
    """Print the time of a cube, including the copies to the device and back."""
    for name, took in seconds.items():
        line = f"{name:8s}{1e3 * took:10.3f} ms a cube"
        if name == "dcarray":
            line += f", {moved / took / 1e9:.1f} GB/s on {device}"
        else:
            line += f": {took / seconds['dcarray']:.2f} times as long"
        print(line, flush=True)


def gain(scene):
    """Return the factor by which beam and Doppler filter amplify a target without any interference."""
    target = Target(0, scene.pulses // 3, amplitude=1.0)
    alone = replace(scene, targets=(target,), clutter=0.0, jammer=0.0, noise=0.0)
    processor, echo = Processor(alone), cube(alone, 0)
    beam = np.abs(beamform(processor, echo, alone))
    assert np.unravel_index(beam.argmax(), beam.shape) == (target.doppler, target.gate)
    return beam.max() / np.abs(processor.compress(echo)[0, 0, 0])


if __name__ == "__main__":
    main()
