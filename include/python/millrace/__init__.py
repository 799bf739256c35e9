"""Feeds training loops in Python from flows that are written in C++.

    import millrace
    photos = millrace.load("photos.cpp")                            # compiles the flow, once
    loader = photos.train("train-{000..146}.tar", batch=256, seed=7)
    for pixels, label in loader:                                    # one epoch
        step(pixels, label)

A batch is a named tuple of tensors: of PyTorch if the program has imported it, otherwise of NumPy. The tensors share
the memory of the batch. The options of `train` are those of the flow; `help(photos.train)` lists them.

images(), images_with_masks() and tokens() are predefined flows, for those who write no C++.
"""
from .build import get_include, load
from .errors import ConservationError, DataError, Error, LateDataError, SetupError, StageError, StorageError
from .loader import KeptBatches, Loader, Report
from .recipes import images, images_with_masks, tokens

__version__ = "0.1.0"
__all__ = ["ConservationError", "DataError", "Error", "KeptBatches", "LateDataError", "Loader", "Report",
           "SetupError", "StageError", "StorageError", "get_include", "images", "images_with_masks", "load", "tokens"]
