# Pillow and webdataset under PyTorch's DataLoader: the usual recipe.
import io

import numpy as np
import PIL
import PIL.Image
import torch
import webdataset
from torchvision.transforms import v2

import counted

s = counted.settings()
crop = v2.RandomResizedCrop(counted.SIZE, counted.SCALE, counted.RATIO)
flip = v2.RandomHorizontalFlip()


def prepare(sample):
    picture = PIL.Image.open(io.BytesIO(sample["jpg"])).convert("RGB")
    return np.asarray(flip(crop(picture))), int(sample["cls"])


def collate(samples):
    pixels = np.stack([pixels for pixels, _ in samples])
    if s.elements == "f16":
        pixels = counted.normalized(pixels)
    return torch.from_numpy(pixels), torch.tensor([label for _, label in samples])


def batches():
    torch.set_num_threads(1)
    shards = (webdataset.WebDataset(counted.tars(s), shardshuffle=8).repeat().shuffle(512).map(prepare)
              .batched(s.batch, collation_fn=collate, partial=False))
    loader = torch.utils.data.DataLoader(shards, batch_size=None, num_workers=s.workers, prefetch_factor=2)
    for pixels, labels in loader:
        yield pixels.numpy(), labels.numpy()


counted.run(s, batches(), {"Pillow": PIL.__version__, "webdataset": webdataset.__version__,
                           "torch": torch.__version__})
