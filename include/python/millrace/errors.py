"""The errors of a loader. The class determines who has to act."""


class Error(RuntimeError):
    """The base class of all errors of Millrace.

    message: the problem. hint: advice. stage, shard, key, offset_bytes, position: the location, as far as it is known.
    """

    def __init__(self, text, message="", hint="", stage="", shard="", key="", offset_bytes=None, position=None):
        super().__init__(text)
        self.message, self.hint, self.stage = message, hint, stage
        self.shard, self.key, self.offset_bytes, self.position = shard, key, offset_bytes, position

    def __reduce__(self):   # errors cross processes, for example in the records of torchrun
        return type(self), (str(self), self.message, self.hint, self.stage, self.shard, self.key, self.offset_bytes,
                            self.position)


class SetupError(Error, ValueError):
    """An option or a call is wrong. The caller has to correct it."""


class DataError(Error):
    """The data are wrong: a damaged shard, a corrupt image, a label that is not a number."""


class LateDataError(DataError):
    """Damage that is detected only at the end of a stream: samples delivered earlier may be wrong."""


class StorageError(Error, OSError):
    """The machine or its storage failed: a file cannot be opened or read, memory cannot be allocated."""

    def __str__(self):   # not that of OSError
        return self.args[0] if self.args else ""


class StageError(Error):
    """A callable of the flow threw an exception. `__cause__` has its text."""


class ConservationError(Error):
    """An epoch did not deliver exactly the planned samples, because of a bug in a source or in Millrace."""
