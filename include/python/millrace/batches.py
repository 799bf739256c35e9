"""Batches: columns with the DLPack protocol, their conversion to tensors, and named tuples."""
import collections
import functools
import sys


def converter(convert):
    """Returns (function for a column or None, whether it receives a capsule for torch)."""
    if convert is not None:
        return convert or None, False
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        from_dlpack = torch.utils.dlpack.from_dlpack

        def tensor_of(capsule):   # every version of torch accepts a capsule; a tuple marks bool
            return from_dlpack(capsule[0]).view(torch.bool) if capsule.__class__ is tuple else from_dlpack(capsule)

        return tensor_of, True
    try:
        import numpy
    except ImportError:
        return None, False

    def array_of(column):
        try:
            return numpy.from_dlpack(column)
        except RuntimeError:   # NumPy before 1.25 has no bool in DLPack
            return numpy.asarray(column)

    return array_of, False


@functools.lru_cache(maxsize=None)
def batch_class(names):
    of_names = collections.namedtuple("Batch", names, rename=True)
    of_names.__reduce__ = lambda self: (_batch, (names, tuple(self)))   # so that batches can be pickled
    return of_names


def _batch(names, values):
    return batch_class(names)._make(values)


class Column:
    """A column of a batch with the DLPack protocol, for any library that has from_dlpack()."""

    __slots__ = ("_column",)

    def __init__(self, column):
        self._column = column

    @classmethod
    def of(cls, module):
        """Returns the class of the columns of a compiled module."""
        return type("Column", (cls,), {"__slots__": (), "_describe": module._describe, "_dlpack": module._dlpack})

    @property
    def shape(self):
        return tuple(self._describe(self._column)[0])

    def __dlpack_device__(self):
        return self._describe(self._column)[1]

    @property
    def __array_interface__(self):
        shape, device, code, bits, address = self._describe(self._column)
        kind = {0: "i", 1: "u", 2: "f", 6: "b"}.get(code)
        if kind is None or device[0] != 1:
            raise BufferError("millrace: NumPy has no array of this type, or on this device. Use convert=.")
        return {"version": 3, "shape": tuple(shape), "typestr": f"<{kind}{bits // 8}", "data": (address, False)}

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if stream == 0:
            raise BufferError("millrace: stream=0 is ambiguous in DLPack. Pass 1 for the legacy default stream, or 2 "
                              "for that of the thread.")
        if copy:
            raise BufferError("millrace: DLPack returns no copies. Copy the tensor instead.")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError("millrace: the column is on another device. Copy the tensor to that device.")
        return self._dlpack(self._column, 1 if stream is None else stream,
                            max_version is not None and max_version[0] >= 1)
