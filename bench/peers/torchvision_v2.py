# torchvision's decode_jpeg and transforms v2 on u8 tensors, webdataset under PyTorch's DataLoader.
import torch
import torchvision
import webdataset
from torchvision.transforms import v2

import counted

s = counted.settings()
crop = v2.RandomResizedCrop(counted.SIZE, counted.SCALE, counted.RATIO, antialias=True)
flip = v2.RandomHorizontalFlip()
mean = torch.from_numpy(255 * counted.MEAN).view(3, 1, 1)
std = torch.from_numpy(255 * counted.STD).view(3, 1, 1)


def prepare(sample):
    encoded = torch.frombuffer(bytearray(sample["jpg"]), dtype=torch.uint8)
    pixels = flip(crop(torchvision.io.decode_jpeg(encoded, mode=torchvision.io.ImageReadMode.RGB)))
    return pixels, int(sample["cls"])


def collate(samples):
    pixels = torch.stack([pixels for pixels, _ in samples])
    if s.elements == "f16":
        pixels = torch.from_numpy(counted.normalized(pixels.permute(0, 2, 3, 1).numpy())).permute(0, 3, 1, 2)
    return pixels, torch.tensor([label for _, label in samples])


def batches():
    torch.set_num_threads(1)
    shards = (webdataset.WebDataset(counted.tars(s), shardshuffle=8).repeat().shuffle(512).map(prepare)
              .batched(s.batch, collation_fn=collate, partial=False))
    loader = torch.utils.data.DataLoader(shards, batch_size=None, num_workers=s.workers, prefetch_factor=2)
    for pixels, labels in loader:
        yield pixels.numpy(), labels.numpy()


counted.run(s, batches(), {"torchvision": torchvision.__version__, "webdataset": webdataset.__version__})
