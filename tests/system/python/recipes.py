# The predefined flows against NumPy: crops, labels, masks, normalized values, mixed rows and windows of tokens.
#
#   python3 tests/system/python/recipes.py
import io
import os
import struct
import tarfile
import tempfile
import zlib

import door
from door import Report, enter

SAMPLES, SIZE = 12, 28   # an image of 32 x 32 is resized to 32 x 32 for validation
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def load():
    import millrace
    module = door.load(os.path.join(os.path.dirname(millrace.__file__), "recipes.cpp"))
    millrace.recipes._module = lambda: module


def ppm(pixels):
    return b"P6 %d %d 255\n" % (pixels.shape[1], pixels.shape[0]) + pixels.tobytes()


def gray_png(mask):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = mask.shape
    rows = b"".join(b"\0" + row.tobytes() for row in mask)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write(folder, name, image_of, mask_of=None):
    path = f"{folder}/{name}.tar"
    with tarfile.open(path, "w") as tar:
        for n in range(SAMPLES):
            fields = {"ppm": ppm(image_of(n)), "cls": b"%d" % n}
            if mask_of:
                fields["png"] = gray_png(mask_of(n))
            for extension, data in fields.items():
                member = tarfile.TarInfo(f"{n:04}.{extension}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return path


def validation(report, np, folder):
    import millrace
    random = np.random.default_rng(7)
    images = random.integers(0, 256, (SAMPLES, 32, 32, 3), dtype=np.uint8)
    masks = random.integers(0, 20, (SAMPLES, 32, 32), dtype=np.uint8)
    shards = write(folder, "random", lambda n: images[n], lambda n: masks[n])
    center = slice(2, 30)
    by_label = {}
    padding = 0
    for batch in millrace.images(shards, size=SIZE, batch=5, augment=None, image="ppm"):
        for pixels, label, valid in zip(*batch):
            if valid:
                by_label[int(label)] = pixels.copy()
            else:
                padding += 1
    right = all((by_label[n] == images[n, center, center]).all() for n in range(SAMPLES))
    report.add("augment=None delivers each image once, as its center crop, and pads",
               None if sorted(by_label) == list(range(SAMPLES)) and padding == 3 and right else f"{sorted(by_label)}")
    batch = next(iter(millrace.images(shards, size=SIZE, batch=SAMPLES, augment=None, dtype="f16", image="ppm")))
    expected = ((images[batch.label][:, center, center] / 255 - MEAN) / DEVIATION).transpose(0, 3, 1, 2)
    error = np.abs(batch.pixels.astype(np.float64) - expected).max()
    report.add('dtype="f16" delivers normalized values',
               None if batch.pixels.dtype == np.float16 and error < 0.002 else f"{batch.pixels.dtype}, {error}")
    batch = next(iter(millrace.images_with_masks(shards, size=SIZE, batch=SAMPLES, augment=None)))
    pairs = {tuple(mask.ravel()): pixels for pixels, mask in zip(batch.pixels, batch.mask)}
    right = all((pairs[tuple(masks[n, center, center].ravel())] == images[n, center, center]).all()
                for n in range(SAMPLES))
    report.add("masks have the crop of their images", None if right else "other pixels")


def training(report, np, folder):
    import millrace

    def color(n):
        return np.array([20 * n, 255 - 20 * n, 7 * n])

    plain = write(folder, "plain", lambda n: np.broadcast_to(color(n).astype(np.uint8), (40, 50, 3)).copy())
    batch = next(iter(millrace.images(plain, size=SIZE, batch=SAMPLES, seed=1)))
    right = all((pixels == color(label)).all() for pixels, label in zip(batch.pixels, batch.label))
    labels = batch.label.tolist()
    other = next(iter(millrace.images(plain, size=SIZE, batch=SAMPLES, seed=2))).label.tolist()
    report.add("crops belong to their labels, in an order that depends on the seed", None if right and
               sorted(labels) == sorted(other) == list(range(SAMPLES)) and labels != other else f"{labels}, {other}")
    batch = next(iter(millrace.images(plain, size=SIZE, batch=SAMPLES, augment="rand_augment", seed=1)))
    changed = sum((pixels != color(label)).any() for pixels, label in zip(batch.pixels, batch.label))
    report.add("RandAugment changes the pixels, not the labels",
               None if changed >= SAMPLES / 4 and batch.label.tolist() == labels else f"{changed} changed")
    for dtype, allowed in (("u8", 1), ("f16", 0.01)):
        def mixed(**options):
            batch = next(iter(millrace.images(plain, size=SIZE, batch=SAMPLES, dtype=dtype, seed=1, **options)))
            pixels = batch.pixels if dtype == "u8" else batch.pixels.transpose(0, 2, 3, 1)
            of_label = [color(n) if dtype == "u8" else (color(n) / 255 - MEAN) / DEVIATION for n in range(SAMPLES)]
            assert (batch.label != batch.label_b).any() and (batch.lambda_ < 1).any()
            return [(row, of_label[a], of_label[b], share) for row, a, b, share in
                    zip(pixels, batch.label, batch.label_b, batch.lambda_)]

        error = max(np.abs(row - share * a - (1 - share) * b).max() for row, a, b, share in mixed(mixup=0.4))
        report.add(f"mixup of {dtype} mixes the pixels of label and label_b by lambda_",
                   None if error <= allowed else f"{error}")
        errors = []
        for row, a, b, share in mixed(cutmix=1.0):
            of_a, of_b = ((np.abs(row - value) <= allowed).all(axis=2) for value in (a, b))
            errors.append(1 if not (of_a | of_b).all() else abs(of_a.mean() - share))
        report.add(f"cutmix of {dtype}: the share of the pixels of label is lambda_",
                   None if max(errors) < 0.001 else f"{errors}")

    def halves(n):
        image = np.zeros((48, 48, 3), np.uint8)
        image[:, 10 + 2 * n:] = 200
        return image

    shards = write(folder, "halves", halves, lambda n: (halves(n)[:, :, 0] > 100).astype(np.uint8))
    batch = next(iter(millrace.images_with_masks(shards, size=SIZE, batch=SAMPLES, seed=3)))
    same = [((pixels[:, :, 0] > 100) == mask).mean() for pixels, mask in zip(batch.pixels, batch.mask)]
    kinds = {(bool(mask[0, 0]), bool(mask[0, -1])) for mask in batch.mask}
    report.add("masks have the random crop and flip of their images",
               None if min(same) > 0.95 and len(kinds) > 1 else f"{min(same)}, {kinds}")


def tokens(report, np, folder):
    import millrace
    data = np.arange(1000, dtype=np.uint16)
    data[5] = 65_000
    path = f"{folder}/text.u16"
    data.tofile(path)
    rows = np.concatenate([batch.ids for batch in millrace.tokens(path, length=33, batch=5, shuffle=False)])
    report.add("shuffle=False delivers the windows of a file in order", None if rows.dtype == np.uint32 and
               (rows == data[:990].reshape(30, 33)).all() else f"{rows.dtype} {rows[:2]}")
    rows = np.concatenate([batch.ids for batch in millrace.tokens(path, length=33, stride=32, batch=1, seed=2)])
    first = np.where(rows[:, 0] == 65_000, 5, rows[:, 0])
    report.add("shuffled windows with a stride begin at each multiple of it, once", None if
               sorted(first) == list(range(0, 960 + 1, 32)) and (first[1:] < first[:-1]).any() and
               all((row == data[f:f + 33]).all() for row, f in zip(rows, first)) else f"{sorted(first)}")


def refused(report):
    import millrace
    for name, call, words in (
            ("another augment", lambda: millrace.images("x.tar", augment="imagenet21k"), "'rand_augment', None"),
            ("another dtype", lambda: millrace.images("x.tar", dtype="f32"), "'u8', 'f16'"),
            ("mixup for validation", lambda: millrace.images("x.tar", augment=None, mixup=1), "needs augment=")):
        try:
            call()
            report.add(f"an error for {name}", "no error")
        except ValueError as e:
            report.add(f"an error for {name}", None if words in str(e) else str(e))


def main():
    report = Report()
    enter(report)
    import numpy as np
    load()
    with tempfile.TemporaryDirectory() as folder:
        refused(report)
        validation(report, np, folder)
        training(report, np, folder)
        tokens(report, np, folder)
    return report.close()


if __name__ == "__main__":
    raise SystemExit(main())
