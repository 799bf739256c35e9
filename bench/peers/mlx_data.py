# mlx-data: reads tars, crops, resizes and flips in C++ threads; one of them builds a complete batch. It has no arrays
# of f16, so these are passed as bytes.
import importlib.metadata
import tarfile

import mlx.data as dx
import numpy as np

import counted


def samples(s):
    """Names and labels are listed once, because mlx-data does not group members."""
    entries = []
    for path in counted.tars(s):
        with tarfile.open(path) as tar:
            labels = {m.name[:-4]: int(tar.extractfile(m).read()) for m in tar if m.name.endswith(".cls")}
            entries += [{"tar": path.encode(), "file": m.name.encode(), "label": labels[m.name[:-4]]}
                        for m in tar.getmembers() if m.name.endswith(".jpg")]
    return entries


def batches(s):
    stream = (dx.buffer_from_vector(samples(s)).shuffle().to_stream().repeat(1_000_000)
              .read_from_tar("tar", "file", "image", from_key=True)
              .load_image("image", from_memory=True)
              .image_random_area_crop("image", counted.SCALE, counted.RATIO)
              .image_resize("image", counted.SIZE, counted.SIZE)
              .image_random_h_flip("image", 0.5)
              .batch(s.batch))
    if s.elements == "f16":
        stream = stream.key_transform("image", lambda pixels: counted.normalized(pixels).view(np.uint8))
    for batch in stream.prefetch(s.workers, s.workers):
        pixels = np.asarray(batch["image"])
        yield pixels.view(np.float16) if s.elements == "f16" else pixels, batch["label"]


s = counted.settings()
counted.run(s, batches(s), {"mlx-data": importlib.metadata.version("mlx-data")})
