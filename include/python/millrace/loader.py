"""Loader: the batches of a flow, epoch by epoch, with resume."""
import atexit
import html
import inspect
import itertools
import keyword
import os
import sys
import warnings
import weakref

from .batches import batch_class, complete, converter

_open_loaders = weakref.WeakSet()   # their threads run


class KeptBatches(UserWarning):
    """The program keeps batches, so that further ones are copied."""


@atexit.register
def _close_all():
    """Ends all threads before the interpreter ends."""
    for loader in list(_open_loaders):
        try:
            loader.close()
        except RuntimeError:   # a daemon thread waits for a batch
            pass


def print_notice(kind, severity, text):
    """The default of `notice`: prints warnings, losses and stalls to sys.stderr."""
    if severity != "info" or kind == "stall":
        print("millrace:", text, file=sys.stderr)


def _world(rank, world_size):
    """The given rank and number of ranks, or those of torch.distributed. None, None: those of the launcher."""
    distributed = sys.modules.get("torch.distributed")
    if rank is None and world_size is None and distributed and distributed.is_available() and \
            distributed.is_initialized():
        rank, world_size = distributed.get_rank(), distributed.get_world_size()
        launched = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
        if launched == (str(rank), str(world_size)):   # the launcher also sets the local rank
            return None, None
    return rank, world_size


class Report(str):
    """The text of a report. Notebooks show it as a page with charts."""

    def __new__(cls, text, page):
        report = super().__new__(cls, text)
        report.page = page
        return report

    def __getnewargs__(self):   # for pickle
        return str(self), self.page

    def _repr_html_(self):
        return f'<iframe srcdoc="{html.escape(self.page)}" style="width: 100%; height: 40em" frameborder="0"></iframe>'


_STATS = ("batches", "samples", "wait_ns", "step_ns", "first_batch_ns", "dropped_last", "replaced", "masked",
          "lost_shards", "digest", "data_wait_share")


class _Session:
    """A running flow. Attributes are those of session_get() in millrace/adapt/python/impl/loader.inl."""

    def __init__(self, module, capsule):
        self._module, self._capsule = module, capsule

    def __getattr__(self, name):
        return self._module._get(self._capsule, name)

    @property
    def types(self):
        """Pairs (name, code of the type in DLPack) for each tensor of a batch."""
        pairs = [text.replace("()", "").rpartition(":")[2].split() for text in self.tensors]
        return [(name, int(code)) for name, code in pairs]

    @property
    def names(self):
        return [name for name, _ in self.types]

    @property
    def stats(self):
        return dict(zip(_STATS, self._module._get(self._capsule, "stats")))

    def close(self, deliver):
        self._module._close(self._capsule, deliver)


class _Loop:
    """The batches of one epoch. It continues after KeyboardInterrupt, which would end a generator."""

    def __init__(self, loader, epoch):
        self._loader, self._epoch, self._next = loader, epoch, None
        self._state = epoch   # replaced by _begun()

    def __iter__(self):
        return self

    def __next__(self):
        loader = self._loader
        if loader is None:
            raise StopIteration
        if loader._loop is not self:
            raise RuntimeError("millrace: a newer loop over this loader has started. Use the newer one, or create a "
                               "loader for each loop.")
        if self._next is None:
            if not loader._begin(self._epoch):
                self._loader = None
                raise StopIteration
            column_type = None if loader._raw else loader._module._Column
            self._next = loader._module._bind(loader._session._capsule, self._begun, self._warn, self._stream,
                                              loader._copies, column_type, loader._notice)
        batch = self._next(self._state)
        if batch is None:
            loader._at = (self._epoch + 1, False)
            self._loader = self._next = None
            raise StopIteration
        return batch

    # Called by millrace/adapt/python/impl/loader.inl:

    def _begun(self, values):
        """Receives the columns of the first batch, and the keys if the flow has keys. Returns the class of the batches,
        and for each column a function that converts it, or None."""
        loader = self._loader
        if loader._raw:
            usual = [code != 6 for _, code in loader._session.types]
        else:
            on_host = values[0].__dlpack_device__()[0] == 1
            usual = [on_host and code <= 2 for _, code in loader._session.types]
        functions = [loader._convert if is_usual else loader._convert_other for is_usual in usual]
        names = [f"{name}_" if keyword.iskeyword(name) else name for name in loader._session.names]   # lambda_
        self._state = batch_class((*names, *["keys"] * (len(values) - len(names)))), *functions
        loader._at = (self._epoch, True)
        return self._state

    def _stream(self):
        """The stream of the training step: torch's current one."""
        cuda = sys.modules["torch"].cuda
        return cuda.current_stream().cuda_stream if cuda.is_initialized() else 0

    def _warn(self):
        loader = self._loader
        if not loader._warned:
            loader._warned = True
            warnings.warn(f"the program keeps all but one of {loader._session.slots} batches, so that further batches "
                          "are copied. Keep copies of the tensors, or set extra_slots=", KeptBatches, stacklevel=3)


class Loader:
    """The batches of a flow. Each `for` delivers one epoch, in order.

    Functions of a compiled flow create loaders. A batch is a named tuple with a tensor for each column, a tensor
    `valid` if the flow pads or tolerates damage, and a list `keys` if the flow requests keys.

    A tensor keeps the slot of its batch in use until it is destroyed, except columns of up to 64 kB, which are copied.
    If the program keeps nearly all slots, further batches are copied, with one warning. on_kept="error" raises
    SetupError instead; extra_slots=N adds slots.

    After `break`, the next `for` delivers the next epoch.
    """

    def __init__(self, module, opener, name, flow_options, *, convert=None, on_kept="copy", notice=print_notice,
                 rank=None, world_size=None, **session_options):
        if on_kept not in ("copy", "error"):
            raise ValueError(f"{name}() argument 'on_kept' must be 'copy' or 'error', not {on_kept!r}")
        damage = session_options.get("on_damage", "fail")
        if damage not in ("fail", "replace", "mask"):
            raise ValueError(f"{name}() argument 'on_damage' must be 'fail', 'replace' or 'mask', not {damage!r}")
        self._module, self._opener, self._flow_options = module, opener, flow_options
        self._session_options = session_options
        self._rank, self._world_size = rank, world_size
        self._convert, self._convert_other, self._raw = converter(convert)
        self._copies = on_kept == "copy"
        self._notice = notice
        self._session = None
        self._resume = ""           # where the next session starts
        self._at = (0, False)       # the epoch of the session's next batch; whether the loop has received some of it
        self._next_epoch = None     # of set_epoch(), for the next loop only
        self._complete_epoch = None   # of a loaded state, if that epoch has no more batches
        self._loop = None           # the newest loop
        self._warned = False
        opener(flow_options, dict(session_options, rank=rank, world_size=world_size), None, True)   # checks types

    def __iter__(self):
        epoch = self._next_epoch if self._next_epoch is not None else self._at[0] + self._at[1]
        self._next_epoch = None
        self._loop = _Loop(self, epoch)
        return self._loop

    def __len__(self):
        """The number of batches of an epoch. Raises TypeError if it is unknown."""
        if self._session is None:
            self._start(self._at[0])
        batches = self._session.epoch_batches
        if batches == 0 or batches > sys.maxsize:
            raise TypeError("millrace: the number of batches of an epoch is unknown. Use a source with an index, or "
                            "epoch_batches=")
        return batches

    def set_epoch(self, epoch):
        """Sets the epoch of the next loop, as DistributedSampler.set_epoch() does."""
        self._next_epoch = int(epoch)

    def state_dict(self):
        """The resume point after the last delivered batch: str, int and bool."""
        position = self._session.position if self._session is not None else ""
        return {"millrace": position or self._resume, "epoch": self._at[0], "begun": self._at[1]}

    def load_state_dict(self, state):
        """Continues after the last batch of the saved state. The number of threads may differ."""
        position, epoch = state["millrace"], state["epoch"]
        next_epoch = self._module._epoch_of(position) if position else epoch   # an error leaves the loader unchanged
        self.close()
        self._resume, self._at = position, (epoch, False)
        self._complete_epoch = self._next_epoch = None
        if state["begun"] and next_epoch > epoch:   # saved at the last batch of the epoch: its rest is empty
            self._complete_epoch = self._next_epoch = epoch
            self._at = (next_epoch, False)

    def close(self):
        """Ends the threads. Tensors stay valid. Another loop starts the threads again."""
        session = self._session
        if session is None:
            return
        session.close(self._notice)
        self._session = None
        self._resume = session.position or self._resume
        _open_loaders.discard(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __reduce__(self):
        raise TypeError("millrace: a loader cannot be sent to another process, because it has threads. Create it in "
                        "the process that uses it. In place of a DataLoader with workers, use the loader itself.")

    def report(self):
        """A text about the bottleneck of the run, with the predicted gain of each setting. Notebooks show a page."""
        return Report(*self._running().report)

    def stats(self):
        """The counters of the run: batches, samples, wait_ns, step_ns, digest, data_wait_share and others."""
        return self._running().stats

    @property
    def description(self):
        """The text of the start: device, threads, shapes and memory."""
        return self._running().description

    @property
    def slots(self):
        """The number of batches that can be in use at the same time."""
        return self._running().slots

    # ---- internal ----

    def _running(self):
        if self._session is None:
            self._start(self._at[0])
        return self._session

    def _start(self, epoch):
        data = sys.modules.get("torch.utils.data")
        if data and data.get_worker_info() is not None:
            raise RuntimeError("millrace: a loader in a worker process of a DataLoader would deliver all samples in "
                               "each worker. Use DataLoader(..., num_workers=0), or the loader without a DataLoader.")
        rank, world_size = _world(self._rank, self._world_size)
        options = dict(self._session_options, rank=rank, world_size=world_size)
        options["resume" if self._resume else "first_epoch"] = self._resume or epoch
        self._session = _Session(self._module, self._opener(self._flow_options, options, self._notice, False))
        _open_loaders.add(self)

    def _begin(self, epoch):
        """Prepares the loop over an epoch. Returns False if the loaded state has no more batches of it."""
        if self._complete_epoch is not None:
            complete, self._complete_epoch = self._complete_epoch, None
            if epoch == complete:
                return False
        at, begun = self._at
        session = self._session
        # A session without an index continues to a later epoch by reading; any other epoch needs a new session.
        if session is not None and (begun or epoch != at) and (epoch <= at or session.indexed or not session.position):
            self.close()
        if self._session is None:
            if epoch != at or begun:
                self._resume = ""
            self._start(epoch)
        self._at = (epoch, False)
        return True


_SESSION_OPTIONS = {   # name: (annotation, default)
    "epochs": ("int | None", None), "epoch_batches": ("int | None", None), "threads": ("int | None", None),
    "io_threads": ("int | None", None), "memory_bytes": ("int | None", None),
    "read_ahead_bytes": ("int | None", None), "extra_slots": ("int", 1), "lanes": ("int | None", None),
    "on_damage": ("str", "fail"), "quarantine": ("str | None", None), "grown": ("bool", False),
    "rank": ("int | None", None), "world_size": ("int | None", None), "convert": ("object", None),
    "on_kept": ("str", "copy"), "notice": ("object", print_notice)}
_SESSION_DOC = """
Options of the loader, after those of the flow:
  threads, io_threads, memory_bytes, read_ahead_bytes: as in millrace::session_options
  epochs: number of epochs of the run; None: no limit. epoch_batches: batches of an epoch; None: one pass
  extra_slots: batches that the program keeps in addition to the current one; on_kept: "copy" or "error"
  on_damage: "fail", "replace" or "mask". quarantine: start of the names of lists of damaged samples
  rank, world_size: None: of torch.distributed, or of the launcher
  convert: function for each column, such as jax.dlpack.from_dlpack; False: objects with __dlpack__
  notice: function (kind, severity, text), or None. The default prints warnings to sys.stderr
"""


def loader_function(module, name, doc, opener, parameters):
    """The function of a module that creates loaders. Called by millrace/adapt/python.hpp."""
    clash = [option for option, _, _ in parameters if option in _SESSION_OPTIONS]
    if clash:
        raise ImportError(f"millrace: {module.__name__}.{name}: the option {clash[0]!r} of the flow is also an option "
                          "of the loader. Rename it.")
    complete(module._Column)
    kind = inspect.Parameter
    # Strings and lists at the front are required if their default is empty.
    required = itertools.takewhile(lambda p: p[2] in ("", []) and not p[1].endswith("None"), parameters)
    count = len(list(required))
    signature = inspect.Signature(
        [kind(option, kind.POSITIONAL_OR_KEYWORD, annotation=annotation, default=kind.empty if n < count else default)
         for n, (option, annotation, default) in enumerate(parameters)] +
        [kind(option, kind.KEYWORD_ONLY, annotation=annotation, default=default)
         for option, (annotation, default) in _SESSION_OPTIONS.items()], return_annotation=Loader)

    def create(*args, **options):
        stages = [option for option, value in options.items() if option not in signature.parameters and callable(value)]
        if stages:
            raise TypeError(f"{name}() argument {stages[0]!r} is a Python callable, which cannot be a stage of a flow: "
                            "stages run in parallel, without Python's global lock. Write it in C++, in the source of "
                            "the module: mr::map([](const mr::record& r, mr::rng& rng) { return ...; }). To change "
                            "complete batches, call it in the loop, or use convert=")
        try:
            bound = signature.bind(*args, **options).arguments
        except TypeError as e:
            raise TypeError(f"{name}() {e}") from None
        flow = {option: bound.pop(option) for option, _, _ in parameters if option in bound}
        bound.setdefault("extra_slots", 1)
        return Loader(module, opener, name, flow, **bound)

    create.__name__ = create.__qualname__ = name
    create.__module__, create.__signature__ = module.__name__, signature
    create.__doc__ = (doc + "\n" if doc else "") + _SESSION_DOC
    return create
