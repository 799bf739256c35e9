# Common code of the loaders' programs: consumes batches, checks them, and counts images, CPU time and wall time.
#
#   settings = counted.settings()                      # from the command line of bench/peers/peers.py
#   counted.run(settings, batches(settings), {"x": x.__version__})
#
# `batches` yields endless pairs (pixels, labels): 256 x 224 x 224 x 3 or 256 x 3 x 224 x 224, u8 or normalized f16, and
# 256 numbers; anything that numpy reads without a copy. The first batches are checked, the next ones only run, so that
# no queue is fuller at the start of the measurement than at its end. CPU time includes the processes that it started.
# One byte of each page is read, because a copy to a device would touch the host's caches as well.
import argparse
import json
import os
import pathlib
import sys
import time

import numpy as np

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)
SIZE = 224
SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
TICKS = os.sysconf("SC_CLK_TCK")


def settings():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path, help="of the packed photographs")
    parser.add_argument("--elements", choices=["u8", "f16"], default="u8")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=6)
    return parser.parse_args()


def tars(s):
    return sorted(str(path) for path in s.folder.glob("*.tar"))


def normalizing_table():
    """The f16 value of each pixel value and channel. In numpy a table is faster than arithmetic in f32."""
    pixels = np.arange(256, dtype=np.float32)[None, :] / 255
    return ((pixels - MEAN[:, None]) / STD[:, None]).astype(np.float16)


def normalized(pixels, table=normalizing_table()):
    """[..., 3] of u8 to f16, by a table."""
    out = np.empty(pixels.shape, np.float16)
    for c in range(3):
        out[..., c] = table[c].take(pixels[..., c])
    return out


def stat_of(pid):
    """The parent of a process, and the CPU seconds of it and of its children that ended."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(text[1]), sum(map(int, text[11:15])) / TICKS


def tree():
    """This process and all its descendants, and their CPU seconds."""
    parents, seconds = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents[int(entry)], seconds[int(entry)] = stat_of(entry)
            except (OSError, ValueError, IndexError):
                pass
    mine = {os.getpid()}
    grew = True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in mine} - mine
        grew = bool(more)
        mine |= more
    return mine, sum(seconds.get(pid, 0) for pid in mine)


def resident_bytes(pids):
    total = 0
    for pid in pids:
        try:
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
        except OSError:
            pass
    return total


def checked(s, pixels, labels, delivers):
    """The mean of the pixels, 0 to 255, and the labels; ends the program if the batch has the wrong type or shape."""
    pixels, labels = np.asarray(pixels), np.asarray(labels).reshape(-1)
    kinds = {"u8": np.uint8, "f16": np.float16, "f32": np.float32}
    shapes = [(s.batch, SIZE, SIZE, 3), (s.batch, 3, SIZE, SIZE)]
    if pixels.shape not in shapes or pixels.dtype != kinds[delivers] or labels.shape != (s.batch,):
        sys.exit(f"the batch has the wrong type or shape: got {pixels.dtype} {pixels.shape} with {labels.shape} labels")
    # Every ninth pixel suffices.
    last = pixels.shape[-1] == 3
    some = pixels[:, ::3, ::3] if last else pixels[:, :, ::3, ::3]
    means = some.mean(axis=(0, 1, 2) if last else (0, 2, 3), dtype=np.float64)
    if s.elements == "f16":
        means = (means * STD + MEAN) * 255
    elif delivers == "f32":
        means = means * 255
    return float(means.mean()), [int(n) for n in labels]


def touch(pixels):
    flat = np.asarray(pixels)
    flat = flat.view(np.uint8).reshape(-1) if flat.flags.c_contiguous else flat.transpose(0, 2, 3, 1).reshape(-1)
    return int(flat[::4096].sum())


def run(s, batches, versions, delivers=None):
    """`delivers`: the type of the pixels, if it is not that of the settings: "f32", in 0 to 1 in place of u8."""
    started = time.monotonic()
    means, labels, first_s = [], set(), None
    for _ in range(4):
        pixels, numbers = next(batches)
        first_s = first_s or time.monotonic() - started
        mean, of_batch = checked(s, pixels, numbers, delivers or s.elements)
        means.append(mean)
        labels.update(of_batch)
    for _ in range(8):
        touch(next(batches)[0])
    images = 0
    begin = time.monotonic()
    cpu = tree()[1]
    while time.monotonic() - begin < s.seconds:
        pixels, numbers = next(batches)
        touch(pixels)
        images += len(numbers)
    wall_s = time.monotonic() - begin
    mine, cpu_end = tree()
    print(json.dumps({"images": images, "cpu_s": cpu_end - cpu, "wall_s": wall_s, "mean": sum(means) / len(means),
                      "labels": len(labels), "resident_bytes": resident_bytes(mine), "first_batch_s": first_s,
                      "versions": versions}), flush=True)
    os._exit(0)   # some of these libraries end slowly or never
