"""L-systems drawn by a turtle, and the dimension of the drawings by counting boxes."""
import numpy as np

SYSTEMS = {
    "dragon": ("FX", {"X": "X+YF+", "Y": "-FX-Y"}, 90, 15),
    "koch": ("F", {"F": "F+F--F+F"}, 60, 7),
    "plant": ("X", {"X": "F+[[X]-X]-F[-FX]+X", "F": "FF"}, 25, 6),
}


def grow(axiom, rules, n):
    text = axiom
    for _ in range(n):
        text = "".join(rules.get(c, c) for c in text)
    return text


def rotation(degrees):
    a = np.deg2rad(degrees)
    return np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])


def draw(text, angle):
    left, right = rotation(angle), rotation(-angle)
    pos = np.array([0.0, 0.0])
    heading = np.array([1.0, 0.0])
    stack = []
    points = [pos]
    for c in text:
        if c == "F":
            pos = pos + heading
            points.append(pos)
        elif c == "+":
            heading = left @ heading
        elif c == "-":
            heading = right.dot(heading)
        elif c == "[":
            stack.append((pos, heading))
        elif c == "]":
            pos, heading = stack.pop()
            points.append(pos)
    return np.array(points)


def box_dimension(points):
    lo, hi = points.min(axis=0), points.max(axis=0)
    scaled = (points - lo) / (hi - lo).max()
    sizes = np.array([4, 8, 16, 32, 64])
    counts = [len(np.unique(np.floor(scaled * s - 1e-7).astype(int), axis=0)) for s in sizes]
    slope, _ = np.polyfit(np.log(sizes), np.log(counts), 1)
    return slope, counts


for name, (axiom, rules, angle, n) in SYSTEMS.items():
    text = grow(axiom, rules, n)
    points = draw(text, angle)
    steps = np.diff(points, axis=0)
    slope, counts = box_dimension(points)
    extent = np.ptp(points, axis=0)
    print(name, len(text), len(points), f"{extent[0]:.4f} {extent[1]:.4f}", f"{np.hypot(*steps.T).sum():.3f}", f"{slope:.4f}")
