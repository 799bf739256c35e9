# SPDL: its iterator reads tars; FFmpeg decodes, crops, scales and flips in threads of a pipeline.
import importlib.metadata
import math
import random

import spdl.io
import spdl.pipeline

import counted

s = counted.settings()


def samples():
    """Two members a sample, in either order; a reservoir shuffles them."""
    reservoir = []
    while True:
        for path in random.sample(counted.tars(s), len(counted.tars(s))):
            with open(path, "rb") as shard:
                content = shard.read()
            halves = {}
            for name, data in spdl.io.iter_tarfile(content):
                key, _, kind = name.rpartition(".")
                halves.setdefault(key, {})[kind] = data
                if len(halves[key]) < 2:
                    continue
                reservoir.append(halves.pop(key))
                if len(reservoir) > 512:
                    at = random.randrange(len(reservoir))
                    reservoir[at], reservoir[-1] = reservoir[-1], reservoir[at]
                    yield reservoir.pop()


def box(width, height):
    """The crop of torchvision's RandomResizedCrop."""
    for _ in range(10):
        area = width * height * random.uniform(*counted.SCALE)
        ratio = math.exp(random.uniform(*map(math.log, counted.RATIO)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return w, h, random.randint(0, width - w), random.randint(0, height - h)
    return width, height, 0, 0


def decode(sample):
    packets = spdl.io.demux_image(bytes(sample["jpg"]))
    w, h, x, y = box(packets.width, packets.height)
    flip = ",hflip" if random.random() < 0.5 else ""
    size = f"{counted.SIZE}:{counted.SIZE}"
    frames = spdl.io.decode_packets(
        packets, filter_desc=f"crop={w}:{h}:{x}:{y}:exact=1,scale={size}:flags=bilinear{flip},format=pix_fmts=rgb24")
    return frames, int(bytes(sample["cls"]))


def collate(decoded):
    pixels = spdl.io.to_numpy(spdl.io.convert_frames([frames for frames, _ in decoded]))
    if s.elements == "f16":
        pixels = counted.normalized(pixels)
    return pixels, [label for _, label in decoded]


def batches():
    pipeline = (spdl.pipeline.PipelineBuilder().add_source(samples())
                .pipe(decode, concurrency=s.workers).aggregate(s.batch, drop_last=True)
                .pipe(collate).add_sink(2).build(num_threads=s.workers + 1))
    with pipeline.auto_stop():
        yield from pipeline


counted.run(s, batches(), {"SPDL": importlib.metadata.version("spdl")})
