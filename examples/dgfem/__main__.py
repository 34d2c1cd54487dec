"""``python -m examples.dgfem``: errors, rates and speed of discontinuous Galerkin methods, and a picture."""

import argparse

import dcarray as dc

from .operators import geometry_of
from .picture import draw
from .runs import EQUATIONS, convergence, problem, solve, speeds
from .stepping import A, B

# Cells of the meshes of a table, by equation and order, and the time until which is computed.
CELLS = {
    "wave": {1: (8, 16, 24), 2: (6, 12, 16), 3: (4, 8, 10), 4: (3, 6, 8)},
    "euler": {1: (16, 24, 32), 2: (12, 16, 24), 3: (8, 12, 16), 4: (6, 8, 12)},
    "navier-stokes": {1: (6, 9, 12), 2: (4, 6, 8), 3: (3, 4, 6), 4: (2, 3, 4)},
}
UNTIL = {"wave": 0.3, "euler": 1.0, "navier-stokes": 0.3}
FIELDS = {"wave": "pressure", "euler": "density", "navier-stokes": "density"}


def main():
    """Print the table of an equation, and draw and explain it if the options say so."""
    parser = argparse.ArgumentParser(prog="python -m examples.dgfem", description=__doc__)
    parser.add_argument("--equation", default="wave", help=f"one of {', '.join(EQUATIONS)}")
    parser.add_argument("--order", type=int, action="append", help="1 to 4; may be given several times")
    parser.add_argument(
        "--cells", type=int, nargs="+", help="cells along a side of the box, of several meshes"
    )
    parser.add_argument("--until", type=float, help="the time until which is computed")
    parser.add_argument(
        "--bend", type=float, default=0.0, help="how far vertices are moved, in parts of a cell"
    )
    parser.add_argument("--device", default="cpu", help=f"numpy, or one of {', '.join(dc.devices())}")
    parser.add_argument("--no-speed", action="store_true", help="do not measure")
    parser.add_argument("--only-speed", action="store_true", help="measure on the last mesh, and no errors")
    parser.add_argument("--no-numpy", action="store_true", help="measure without NumPy, which may take long")
    parser.add_argument("--picture", help="a file for a slice through the finest solution: .png, .svg, .pdf")
    parser.add_argument("--explain", help="a file for the region of the steps: .svg, .html, .txt")
    args = parser.parse_args()
    try:
        show(args)
    except (ValueError, ModuleNotFoundError) as error:
        parser.exit(2, f"{error}\n")


def show(args):
    """Print the table, and what other options ask for."""
    device = None if args.device == "numpy" else args.device
    orders = args.order or (1, 2, 3, 4)
    problem(args.equation, orders[0], 2)  # says what is wrong with the names
    until = UNTIL[args.equation] if args.until is None else args.until
    if until <= 0:
        raise ValueError(f"--until {until}: must be positive")
    for order in orders:
        if order not in CELLS[args.equation]:
            raise ValueError(f"order {order}: there are orders 1 to 4")
        cells = tuple(args.cells or CELLS[args.equation][order])
        print(f"{args.equation}, order {order}, until t = {until:g}, on {args.device}", flush=True)
        if not args.only_speed:
            print("  cells  tetrahedra      error   rate")
        for n, count, found, rate in convergence(
            args.equation, order, () if args.only_speed else cells, until, device, args.bend
        ):
            print(
                f"  {n:5d}  {count:10,d}  {found:9.3e}  {'' if rate is None else format(rate, '5.2f')}",
                flush=True,
            )
        if device is not None and not args.no_speed:
            show_speed(*speeds(args.equation, order, cells[-1], device, not args.no_numpy), args.device)
    if args.picture:
        one = problem(args.equation, order, cells[-1])
        field = solve(one, until, device)[0][0]
        draw(args.picture, one.mesh, field, f"{FIELDS[args.equation]}, order {order}, t = {until:g}")
        print("picture:", args.picture)
    if args.explain:
        one = problem(args.equation, order, cells[0])
        steps = dc.accelerate(one.advance)
        shown = dc.explain(steps, one.start, 1, one.dt, geometry_of(one.mesh), A, B, *one.extra)
        print("explanation:", shown.save(args.explain))


def show_speed(seconds, unknowns, moved, device):
    """Print the time of a step, in which five stages update each unknown."""
    for name, took in seconds.items():
        rate = 5e-6 * unknowns / took
        line = f"  {name:8s}{1e3 * took:10.3f} ms a step, {rate:9.2f} million unknowns a second"
        if name == "dcarray":
            line += f", {moved / took / 1e9:.1f} GB/s on {device}"
        else:
            line += f": {took / seconds['dcarray']:.2f} times as long"
        print(line, flush=True)


if __name__ == "__main__":
    main()
