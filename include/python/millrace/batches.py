"""Batches: columns with the DLPack protocol, their conversion to tensors, and named tuples."""
import collections
import functools
import sys


def converter(convert):
    """Returns (function for a column or None, the same for columns that it may refuse, whether they receive capsules).

    It may refuse bool, and without capsules bf16 and columns on a device.
    """
    if convert is not None:
        return convert or None, convert or None, False
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        from_dlpack = torch.utils.dlpack.from_dlpack   # every version of torch accepts a capsule

        def bool_tensor_of(capsule):
            return from_dlpack(capsule).view(torch.bool)

        return from_dlpack, bool_tensor_of, True
    try:
        import numpy
    except ImportError:
        return None, None, False

    def array_of(column):
        try:
            return numpy.from_dlpack(column)
        except RuntimeError:   # NumPy before 1.25 has no bool in DLPack
            return numpy.asarray(column)

    return numpy.from_dlpack, array_of, False


@functools.lru_cache(maxsize=None)
def batch_class(names):
    of_names = collections.namedtuple("Batch", names, rename=True)
    of_names.__reduce__ = lambda self: (_batch, (names, tuple(self)))   # so that batches can be pickled
    return of_names


def _batch(names, values):
    return batch_class(names)._make(values)


class _Column:
    """The members that complete() adds to the class of the columns of a compiled module."""

    @property
    def shape(self):
        return tuple(self._describe()[0])

    @property
    def __array_interface__(self):
        shape, device, code, bits, address = self._describe()
        kind = {0: "i", 1: "u", 2: "f", 6: "b"}.get(code)
        if kind is None or device[0] != 1:
            raise BufferError("millrace: NumPy has no array of this type, or on this device. Use convert=.")
        return {"version": 3, "shape": tuple(shape), "typestr": f"<{kind}{bits // 8}", "data": (address, False)}

    def __dlpack_device__(self):
        return self._describe()[1]

    def __reduce__(self):
        raise TypeError("millrace: a column cannot be pickled. Convert it to a tensor or an array first.")

    def _check(self, stream, dl_device, copy):
        """Raises the errors of __dlpack__(). Returns the number of the stream."""
        if stream == 0:
            raise BufferError("millrace: stream=0 is ambiguous in DLPack. Pass 1 for the legacy default stream, or 2 "
                              "for that of the thread.")
        if copy:
            raise BufferError("millrace: DLPack returns no copies. Copy the tensor instead.")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError("millrace: the column is on another device. Copy the tensor to that device.")
        return 1 if stream is None else stream


def complete(column):
    """Adds to the class of the columns of a compiled module the members that are not called for each batch."""
    column.__doc__ = "A column of a batch with the DLPack protocol, for any library that has from_dlpack()."
    for name in ("shape", "__array_interface__", "__dlpack_device__", "__reduce__", "_check"):
        setattr(column, name, vars(_Column)[name])
