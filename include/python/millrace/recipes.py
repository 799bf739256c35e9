"""Predefined flows for those who write no C++. The source is recipes.cpp, which is compiled at the first call."""
import functools
import pathlib

from .build import load


@functools.lru_cache(maxsize=None)
def _module():
    return load(pathlib.Path(__file__).with_name("recipes.cpp"))


def _choice(function, option, value, *choices):
    if value not in choices:
        raise ValueError(f"{function}() argument {option!r} must be one of {', '.join(map(repr, choices))}, not "
                         f"{value!r}")


def images(shards, *, size=224, batch=256, augment="imagenet", mixup=0.0, cutmix=0.0, dtype="u8", seed=0,
           image="jpg;jpeg;png;ppm", label="cls", **options):
    """Images and labels from WebDataset shards: a Loader of batches (pixels, label).

    shards: names of local files with braces, such as "train-{000..146}.tar"
    augment: "imagenet": a random resized crop and a random flip; "rand_augment": torchvision's RandAugment after these;
        None: for validation, each image once: the shorter side is resized to 8/7 of `size`, and the center is cropped.
        The last batch is padded, and has a column `valid`
    mixup, cutmix: the parameters alpha of Mixup and CutMix; 0: off. A batch then has label_b and lambda_: the target
        is lambda_ * label + (1 - lambda_) * label_b
    dtype: "u8": [batch, size, size, 3]; "f16": [batch, 3, size, size], normalized with ImageNet's mean and deviation
    image, label: the extensions of the fields. A label is a number in text
    options: those of every loader, such as threads=, on_damage= and rank=
    """
    _choice("images", "augment", augment, "imagenet", "rand_augment", None)
    _choice("images", "dtype", dtype, "u8", "f16")
    if (mixup or cutmix) and augment is None:
        raise ValueError("images() argument 'mixup' or 'cutmix' needs augment='imagenet' or 'rand_augment'")
    create = getattr(_module(), f"{'mixed' if mixup or cutmix else 'images'}_{dtype}")
    return create(shards, size=size, batch=batch, augment=augment or "", mixup=mixup, cutmix=cutmix, seed=seed,
                  image=image, label=label, **options)


def images_with_masks(shards, *, size=224, batch=64, augment="imagenet", seed=0, image="jpg;jpeg;ppm", mask="png",
                      **options):
    """Images and their label maps from WebDataset shards: a Loader of batches (pixels, mask).

    The mask has the crop and the flip of its image, without interpolation: [batch, size, size] of u8, one class per
    pixel. `mask` is the extension of a PNG with palette indexes or gray values. Other options: as for images().
    """
    _choice("images_with_masks", "augment", augment, "imagenet", "rand_augment", None)
    return _module().images_with_masks(shards, size=size, batch=batch, augment=augment or "", seed=seed, image=image,
                                       mask=mask, **options)


def tokens(files, *, length, batch=32, stride=None, shuffle=True, seed=0, **options):
    """Windows of token files: a Loader of batches (ids,), with ids [batch, length] of u32 (int32 in PyTorch).

    files: flat files of integers, .npy files, or files of llm.c. The type is in the name, such as .u32; otherwise u16
    length: tokens per window, such as context + 1. stride: distance between the starts of two windows; None: length
    shuffle: False: the windows of a file in their order
    """
    return _module().tokens(files, length=length, batch=batch, stride=stride, shuffle=shuffle, seed=seed, **options)
