# DALI's CPU operators: its reader of WebDataset, decoding of the crop alone, resize without antialias.
import numpy as np
import nvidia.dali
from nvidia.dali import fn, pipeline_def, types

import counted


@pipeline_def
def images(s):
    jpg, cls = fn.readers.webdataset(paths=counted.tars(s), ext=["jpg", "cls"], random_shuffle=True, initial_fill=512,
                                     name="shards")
    pixels = fn.decoders.image_random_crop(jpg, device="cpu", output_type=types.RGB, random_area=counted.SCALE,
                                           random_aspect_ratio=counted.RATIO)
    pixels = fn.resize(pixels, size=[counted.SIZE, counted.SIZE], interp_type=types.INTERP_LINEAR, antialias=False)
    flip = fn.random.coin_flip()
    if s.elements == "f16":
        pixels = fn.crop_mirror_normalize(pixels, mirror=flip, dtype=types.FLOAT16, output_layout="CHW",
                                          mean=list(255 * counted.MEAN), std=list(255 * counted.STD))
    else:
        pixels = fn.flip(pixels, horizontal=flip)
    return pixels, fn.pad(cls, fill_value=0)


def batches(s):
    pipe = images(s, batch_size=s.batch, num_threads=s.workers, device_id=None, prefetch_queue_depth=2)
    pipe.build()
    while True:
        pixels, text = pipe.run()
        labels = [int(bytes(row).rstrip(b"\0")) for row in np.asarray(text.as_array())]
        yield pixels.as_array(), labels


s = counted.settings()
counted.run(s, batches(s), {"DALI": nvidia.dali.__version__})
