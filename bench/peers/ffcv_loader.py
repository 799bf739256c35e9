# FFCV: its own container with the same JPEG bytes, decoded and resized by its compiled pipelines.
import importlib.metadata

import numpy as np
from ffcv.fields.basics import IntDecoder
from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip

import counted

s = counted.settings()


def batches():
    image = [RandomResizedCropRGBImageDecoder((counted.SIZE, counted.SIZE), counted.SCALE, counted.RATIO),
             RandomHorizontalFlip(0.5)]
    if s.elements == "f16":
        image.append(NormalizeImage(255 * counted.MEAN, 255 * counted.STD, np.float16))
    samples = sum(1 for _ in Loader(str(s.folder / "set.beton"), batch_size=1, num_workers=1).indices)
    # Every epoch starts new threads, so one epoch lasts for the run and contains each sample many times.
    indices = np.tile(np.arange(samples), 400)
    np.random.default_rng(1).shuffle(indices)
    loader = Loader(str(s.folder / "set.beton"), batch_size=s.batch, num_workers=s.workers, os_cache=True,
                    order=OrderOption.SEQUENTIAL, indices=indices, drop_last=True, batches_ahead=2,
                    pipelines={"image": image, "label": [IntDecoder()]})
    for pixels, labels in loader:
        pixels = np.asarray(pixels)
        if s.elements == "f16":
            pixels = pixels.view(np.float16)   # it moves them as integers of the same bits
        yield pixels, np.asarray(labels)


counted.run(s, batches(), {"FFCV": importlib.metadata.version("ffcv")})
