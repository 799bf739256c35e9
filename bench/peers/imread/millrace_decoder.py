"""Millrace's JPEG decoder for imread-benchmark, which finds it by the entry point in pyproject.toml.

Returns all pixels of the stored image, as the benchmark requires: [height, width, 3] of u8, without EXIF's orientation.
The environment variable MILLRACE_PACKAGE names the folder of the package millrace, unless it is installed, and
MILLRACE_CACHE that of the compiled library.
"""
import ctypes
import functools
import os
import pathlib
import sys

import numpy as np
from imread_benchmark.decoders import BaseDecoder


@functools.lru_cache(maxsize=None)   # of each process
def _library():
    sys.path.append(os.environ.get("MILLRACE_PACKAGE", ""))
    import millrace
    library = ctypes.CDLL(millrace.load(pathlib.Path(__file__).with_name("decode.cpp"), flags=["-O3"]).__file__)
    library.size_of_jpeg.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)]
    library.decode_jpeg.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
    return library


class MillraceDecoder(BaseDecoder):
    name = "millrace"
    package_name = "millrace"

    def decode(self, data: bytes) -> np.ndarray:
        library, sides = _library(), (ctypes.c_size_t * 2)()
        if not library.size_of_jpeg(data, len(data), sides):
            raise ValueError("the file is not a JPEG")
        pixels = np.empty((*sides, 3), np.uint8)
        if not library.decode_jpeg(data, len(data), pixels.ctypes.data, pixels.nbytes):
            raise ValueError("the JPEG is damaged")
        return pixels
