# Diffusion-limited aggregation on a grid, walker by walker, and the mass-radius exponent
import numpy as np

np.random.seed(99)
size = 161
grid = np.zeros((size, size), dtype=np.uint8)
centre = size // 2
grid[centre, centre] = 1
radius = 1
stuck = 1
lost = 0
steps = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])

while stuck < 420:
    phi = np.random.uniform(0, 2 * np.pi)
    x = int(centre + (radius + 4) * np.cos(phi))
    y = int(centre + (radius + 4) * np.sin(phi))
    while True:
        dx, dy = steps[np.random.randint(4)]
        x += dx
        y += dy
        r = np.hypot(x - centre, y - centre)
        if r > radius + 14 or x < 1 or y < 1 or x > size - 2 or y > size - 2:
            lost += 1
            break
        if grid[x - 1, y] or grid[x + 1, y] or grid[x, y - 1] or grid[x, y + 1]:
            grid[x, y] = 1
            stuck += 1
            if r > radius:
                radius = r
            break
    if radius > size // 2 - 16:
        break

xs, ys = np.nonzero(grid)
dist = np.hypot(xs - centre, ys - centre)
rs = np.arange(3, int(radius * 0.8))
mass = np.array([(dist <= r).sum() for r in rs])
dimension = np.polyfit(np.log(rs), np.log(mass), 1)[0]
print(stuck, lost, round(float(radius), 4), mass.tolist()[-3:], "dimension %.4f" % dimension)
