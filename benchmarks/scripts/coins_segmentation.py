"""Image processing on a picture of discs: Otsu, equalisation, morphology, labels by flood fill, properties."""
import numpy as np


def make_image(h, w, seed):
    rng = np.random.RandomState(seed)
    yy, xx = np.ogrid[:h, :w]
    img = 70 + 20.0 * xx / w + 10.0 * yy / h
    for _ in range(180):
        cy, cx, r = rng.randint(15, h - 15), rng.randint(15, w - 15), rng.randint(6, 14)
        disc = (yy - cy) ** 2 + (xx - cx) ** 2 <= r * r
        img = np.where(disc, 150 + 3 * r, img)
    img = img + rng.normal(0, 8, (h, w))
    return np.clip(img, 0, 255).astype(np.uint8)


def otsu(img):
    hist = np.bincount(img.ravel(), minlength=256).astype(float)
    best, threshold = -1, 0
    total, total_sum = hist.sum(), np.dot(np.arange(256), hist)
    w0 = s0 = 0.0
    for t in range(256):
        w0 += hist[t]
        if w0 == 0:
            continue
        w1 = total - w0
        if w1 == 0:
            break
        s0 += t * hist[t]
        between = w0 * w1 * (s0 / w0 - (total_sum - s0) / w1) ** 2
        if between > best:
            best, threshold = between, t
    return threshold


def equalise(img):
    hist, _ = np.histogram(img, 256, (0, 256))
    cdf = hist.cumsum()
    table = np.round(255 * (cdf - cdf.min()) / (cdf[-1] - cdf.min())).astype(np.uint8)
    return table[img]


def erode(mask):
    out = mask.copy()
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            out &= np.roll(np.roll(mask, dy, 0), dx, 1)
    return out


def dilate(mask):
    p = np.pad(mask, 1)
    out = np.zeros_like(mask)
    for dy in range(3):
        for dx in range(3):
            out |= p[dy:dy + mask.shape[0], dx:dx + mask.shape[1]]
    return out


def label(mask):
    labels = np.zeros(mask.shape, dtype=int)
    current = 0
    h, w = mask.shape
    for y in range(h):
        for x in range(w):
            if mask[y, x] and labels[y, x] == 0:
                current += 1
                stack = [(y, x)]
                while stack:
                    i, j = stack.pop()
                    if 0 <= i < h and 0 <= j < w and mask[i, j] and labels[i, j] == 0:
                        labels[i, j] = current
                        stack.extend([(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)])
    return labels, current


def box_blur(img, k):
    c = np.cumsum(np.cumsum(np.pad(img.astype(float), ((k + 1, k), (k + 1, k)), mode="reflect"), axis=0), axis=1)
    n = 2 * k + 1
    return (c[n:, n:] - c[:-n, n:] - c[n:, :-n] + c[:-n, :-n]) / n**2


image = make_image(700, 900, 12)
blurred = box_blur(image, 2)
t = otsu(blurred.astype(np.uint8))
mask = blurred > t
opened = mask
for _ in range(2):
    opened = erode(opened)
for _ in range(2):
    opened = dilate(opened)
labels, n = label(opened)
area = np.bincount(labels.ravel())[1:]
ys, xs = np.indices(labels.shape)
cy = np.bincount(labels.ravel(), weights=ys.ravel())[1:] / area
cx = np.bincount(labels.ravel(), weights=xs.ravel())[1:] / area
bright = [image[labels == k].mean() for k in range(1, n + 1)]
print(t, mask.sum(), opened.sum(), n, np.sort(area)[-3:], f"{cy.mean():.5f} {cx.mean():.5f} {np.mean(bright):.5f}")
eq = equalise(image)
print(eq.mean().round(5), eq.std().round(5), np.percentile(eq, [10, 50, 90]))
