# Loaders in programs of PyTorch: examples/python/train_torch.py, torchrun, torch.utils.cpp_extension, torch.compile,
# torch.distributed.checkpoint, torchdata, Lightning, Accelerate and the Trainer of transformers.
#
#   python3 tests/system/python/frameworks.py
#   MILLRACE_PYTHON=venv/bin/python3 python3 tests/system/python/frameworks.py      # with the packages of that folder
#
# Skips each framework that the interpreter lacks: pip install torch numpy pillow torchdata lightning accelerate
# transformers.
import importlib
import io
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

from door import (COMPILED, PART, ROOT, Report, enter, flows, has_torchrun, library, library_flags, loaded, photos,
                  python_object, write_shards)

EXAMPLE = ROOT / "examples" / "python"
PER_EPOCH = 10   # batches of 4


def imported(report, *names):
    """The modules, or None after a skipped check."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [importlib.import_module(name) for name in names]
    except Exception as e:   # a package that does not suit another one's version raises errors of many types
        report.skip(names[-1], f"not installed, or of another version: {type(e).__name__}: {e}")
        return None


def from_guide(text):
    """The names of the guide's program that contains `text`."""
    guide = (ROOT / "examples" / "guide" / "python.md").read_text()
    names = {}
    exec(next(p for p in re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL) if text in p), names)
    return names


def problem(got, expected):
    return None if got == expected else f"{got}, expected {expected}"


def numbers(module, shards, **options):
    return module.numbers(shards, 4, seed=7, threads=1, notice=None, **options)


def linear(torch):
    model = torch.nn.Linear(8, 1)
    torch.nn.init.zeros_(model.weight), torch.nn.init.zeros_(model.bias)
    return model


def loss_of(model, batch):
    return ((model(batch.values)[:, 0] - batch.label / 42) ** 2).mean()


# ---- the example ----

def write_photos(folder):
    """Shards of JPEGs: the color of an image depends on its class."""
    from PIL import Image
    for name, count in {"train": 96, "val": 21}.items():
        with tarfile.open(f"{folder}/{name}.tar", "w") as tar:
            for n in range(count):
                jpeg = io.BytesIO()
                Image.new("RGB", (40, 36), ((n % 3) * 100, n, 255 - (n % 3) * 100)).save(jpeg, "JPEG")
                for extension, data in {"jpg": jpeg.getvalue(), "cls": b"%d" % (n % 3)}.items():
                    member = tarfile.TarInfo(f"{n:04}.{extension}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))


def run_example(kill_after, rows_file, *arguments):
    """Runs in another process: the example with the library of the tests. Kills itself after that many checkpoints.

    Writes the checksum of each row of the training batches to a file for each rank.
    """
    import millrace
    import millrace.loader
    rows = open(f"{rows_file}.{os.environ.get('RANK', 0)}", "a")
    next_batch = millrace.loader._Loop.__next__

    def recorded(loop):
        batch = next_batch(loop)
        if len(batch) == 2:   # validation has flags and keys
            for pixels, label in zip(*batch):
                rows.write(f"{label} {zlib.crc32(pixels.numpy().tobytes()):08x}\n")
            rows.flush()
        return batch

    millrace.loader._Loop.__next__ = recorded
    replace = os.replace
    millrace.load = lambda source: loaded("photos", os.environ["MILLRACE_TEST_FLOW"])
    saved = []

    def counted(*paths):
        replace(*paths)
        saved.append(paths)
        if len(saved) == kill_after:
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = counted
    sys.argv = [str(EXAMPLE / "train_torch.py"), *arguments]
    exec(compile(pathlib.Path(sys.argv[0]).read_text(), sys.argv[0], "exec"),
         {"__name__": "__main__", "__file__": sys.argv[0]})


def example(report, folder):
    modules = imported(report, "PIL", "torch")
    if not modules:
        return
    torch = modules[1]
    write_photos(folder)
    environment_of_all = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=str(ROOT / "include" / "python"),
                              MILLRACE_TEST_FLOW=photos().__file__)

    def run(checkpoint, kill_after=0, launcher=(sys.executable,), **environment):
        done = subprocess.run(
            [*launcher, __file__, "--example", str(kill_after), f"{folder}/{checkpoint}.rows", f"{folder}/train.tar",
             f"{folder}/val.tar", "--classes", "3", "--epochs", "3", "--batch", "8", "--size", "32", "--save-every",
             "2", "--checkpoint", f"{folder}/{checkpoint}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=900, env=environment_of_all | environment)
        return done.returncode, done.stdout

    def run_ranks(checkpoint, kill_after=0):
        """Two ranks. Returns (exit status of a rank or of torchrun, all output)."""
        if has_torchrun(torch):
            return run(checkpoint, kill_after, (sys.executable, "-m", "torch.distributed.run", "--standalone",
                                                "--nproc-per-node", "2"))
        for _ in range(5):
            with socket.socket() as free, ThreadPoolExecutor() as pool:
                free.bind(("127.0.0.1", 0))
                group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]),
                         "USE_LIBUV": "0"}
                free.close()
                done = list(pool.map(lambda rank: run(checkpoint, kill_after, RANK=rank, LOCAL_RANK=rank, **group),
                                     "01"))
            text = "".join(output for _, output in done)
            if "Address already in use" not in text:   # another program was faster
                break
        return max((code for code, _ in done), key=abs), text

    def weights(checkpoint):
        return torch.load(f"{folder}/{checkpoint}")["network"]

    def same(a, b, allowed):
        return all((a[name] - b[name]).abs().max() <= allowed for name in a)

    def rows(checkpoint, rank):
        return pathlib.Path(f"{folder}/{checkpoint}.rows.{rank}").read_text().splitlines()

    code, text = run("complete.pt")
    accuracies = [float(a) for a in re.findall(r"accuracy ([\d.]+)", text)]
    report.add("examples/python/train_torch.py trains a model",
               None if code == 0 and len(accuracies) == 3 and accuracies[-1] > 0.9 else f"{code}: {text}")
    codes = [run("killed.pt", kill_after)[0] for kill_after in (3, 5, 0)]   # in epoch 0, then in epoch 1
    report.add("killed twice and started again, it ends with the same weights",
               None if codes == [-9, -9, 0] and same(weights("killed.pt"), weights("complete.pt"), 0) else str(codes))
    code, text = run_ranks("ranks.pt")
    report.add("two ranks of torchrun train on the batches of one",   # whose sums have another order
               None if code == 0 and same(weights("ranks.pt"), weights("complete.pt"), 0.01) else f"{code}: {text}")
    joined = [row for pair in zip(rows("ranks.pt", 0), rows("ranks.pt", 1)) for row in pair]
    expected = rows("complete.pt", 0)
    report.add("each rank receives every second row of these batches",
               None if joined == expected
               else f"{joined[:8]}, expected {expected[:8]}")
    codes = [run_ranks("killed_ranks.pt", kill_after)[0] for kill_after in (8, 0)]   # in epoch 1
    report.add("torchrun, killed in an epoch and started again, ends with the same weights",
               None if codes[0] != 0 and codes[1] == 0 and same(weights("killed_ranks.pt"), weights("ranks.pt"), 0)
               else str(codes))


# ---- PyTorch ----

def cpp_extension(report, folder):
    modules = imported(report, "torch", "torch.utils.cpp_extension")
    if not modules:
        return
    folder = pathlib.Path(folder) / "extension"
    folder.mkdir()
    import millrace
    os.environ["CXX"] = "g++"   # PyTorch calls ccache
    try:
        module = modules[1].load(
            "photos", [str(EXAMPLE / "flow.cpp")], build_directory=str(folder),
            extra_include_paths=[millrace.get_include()], extra_cflags=["-std=c++20", "-O0", "-DMILLRACE_COMPILED"],
            extra_ldflags=[str(python_object(PART, ["-O0", COMPILED])), str(library()), *library_flags("--libs")])
    except Exception as e:
        report.add("torch.utils.cpp_extension.load() compiles a flow", f"{type(e).__name__}: {e}")
        return
    report.add("torch.utils.cpp_extension.load() compiles a flow",
               None if "Augmented images." in module.train.__doc__ else module.train.__doc__)


def compiled(report, module, shards):
    modules = imported(report, "torch", "torch._dynamo")
    if not modules:
        return
    torch = modules[0]
    torch._dynamo.config.error_on_recompile = True   # tensors of all batches have the same properties
    plain, model = linear(torch), linear(torch)
    step = torch.compile(loss_of, fullgraph=True)
    losses = [[], []]
    for batch in numbers(module, shards):
        for losses_of, network, function in ((losses[0], plain, loss_of), (losses[1], model, step)):
            loss = function(network, batch)
            network.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p in network.parameters():
                    p -= 0.1 * p.grad
            losses_of.append(loss.item())
    error = max(abs(a - b) for a, b in zip(*losses))
    report.add("torch.compile compiles a step once, with the same losses",
               None if len(losses[0]) == PER_EPOCH and error < 1e-5 else f"{losses}")


def distributed_checkpoint(report, module, shards, expected, folder):
    modules = imported(report, "torch.distributed.checkpoint")
    if not modules:
        return
    dcp = modules[0]
    if not hasattr(dcp, "save"):
        report.skip("torch.distributed.checkpoint", "this version of PyTorch has no save()")
        return
    loader = numbers(module, shards)
    loop = iter(loader)
    for _ in range(3):
        next(loop)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")   # there is one process
        dcp.save({"loader": loader}, checkpoint_id=f"{folder}/dcp")
        other = numbers(module, shards)
        next(iter(other))   # DCP replaces the values of a state, so that it needs one
        dcp.load({"loader": other}, checkpoint_id=f"{folder}/dcp")
    report.add("torch.distributed.checkpoint saves and loads a loader",
               problem([batch.label.tolist() for batch in other], expected[3:PER_EPOCH]))
    loader.close()


def stateful(report, module, shards, expected):
    modules = imported(report, "torchdata.stateful_dataloader")
    if not modules:
        return
    batches = from_guide("class Batches")["Batches"]

    def wrapped():
        return modules[0].StatefulDataLoader(batches(numbers(module, shards)), batch_size=None, num_workers=0)

    first, rest = wrapped(), wrapped()
    loop = iter(first)
    labels = [next(loop).label.tolist() for _ in range(3)]
    rest.load_state_dict(first.state_dict())
    labels += [batch.label.tolist() for batch in rest]
    report.add("torchdata's StatefulDataLoader continues after the last batch", problem(labels, expected[:PER_EPOCH]))


# ---- training frameworks ----

def of_lightning(report, module, shards, expected, folder):
    modules = imported(report, "torch", "lightning.pytorch")
    if not modules:
        return
    torch, lightning = modules

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.linear, self.labels = linear(torch), []

        def training_step(self, batch, _):
            self.labels.append(batch.label.tolist())
            return loss_of(self.linear, batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    def fit(loader, epochs, resume=None):
        model = Model()
        save = lightning.callbacks.ModelCheckpoint(folder, "lightning-{step}", save_top_k=-1, every_n_train_steps=13)
        trainer = lightning.Trainer(max_epochs=epochs, logger=False, callbacks=[save], accelerator="cpu",
                                    enable_progress_bar=False, enable_model_summary=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trainer.fit(model, loader, ckpt_path=resume)
        loader.close()
        return model

    complete = fit(numbers(module, shards), 2)
    report.add("Lightning trains on the batches of two epochs", problem(complete.labels, expected[:2 * PER_EPOCH]))
    rest = fit(numbers(module, shards), 2, f"{folder}/lightning-step=13.ckpt")
    report.add("Lightning continues after the last batch of its checkpoint", problem(rest.labels, expected[13:20]))
    report.add("it ends with the same weights", None if torch.equal(
        rest.linear.weight, complete.linear.weight) else f"{rest.linear.weight}")
    # Lightning requests one batch in advance from a loader without a length.
    unsized = numbers(module, shards)
    type(unsized).__len__, length = None, type(unsized).__len__
    try:
        labels = fit(unsized, 2).labels
    finally:
        type(unsized).__len__ = length
    report.add("Lightning trains on a loader without a length", problem(labels, expected[:2 * PER_EPOCH]))


def of_accelerate(report, module, shards, expected, folder):
    modules = imported(report, "torch", "accelerate")
    if not modules:
        return
    torch, accelerate = modules
    accelerator = accelerate.Accelerator(cpu=True)
    model, optimizer = accelerator.prepare(linear(torch), torch.optim.SGD(linear(torch).parameters(), 0.1))
    loader = numbers(module, shards)
    accelerator.register_for_checkpointing(loader)
    labels = []
    for number, batch in enumerate(loader):
        accelerator.backward(loss_of(model, batch))
        optimizer.step()
        labels.append(batch.label.tolist())
        if number == 2:
            accelerator.save_state(f"{folder}/accelerate")
    report.add("Accelerate trains on the batches of an epoch", problem(labels, expected[:PER_EPOCH]))
    accelerator.load_state(f"{folder}/accelerate")
    report.add("Accelerate continues after the last batch of its checkpoint",
               problem([batch.label.tolist() for batch in loader], expected[3:PER_EPOCH]))
    loader.close()


def of_transformers(report, module, shards, expected, folder):
    modules = imported(report, "torch", "accelerate", "transformers")
    if not modules:
        return
    torch, _, transformers = modules
    trainer_class = from_guide("class Trainer")["Trainer"]

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.labels = linear(torch), []

        def forward(self, values, label, **_):
            self.labels.append(label.tolist())
            return {"loss": ((self.linear(values)[:, 0] - label / 42) ** 2).mean()}

    def train(resume=None):
        model, loader = Model(), numbers(module, shards)
        settings = transformers.TrainingArguments(
            f"{folder}/trainer", num_train_epochs=2, save_steps=13, use_cpu=True, report_to=[], disable_tqdm=True,
            ignore_data_skip=True, logging_strategy="no", lr_scheduler_type="constant", learning_rate=0.1,
            optim="sgd", max_grad_norm=0)
        trainer_class(model, settings, train_dataset=loader).train(resume_from_checkpoint=resume)
        loader.close()
        return model

    complete = train()
    report.add("the Trainer of transformers trains on the batches of two epochs",
               problem(complete.labels, expected[:2 * PER_EPOCH]))
    rest = train(f"{folder}/trainer/checkpoint-13")
    report.add("the Trainer continues after the last batch of its checkpoint", problem(rest.labels, expected[13:20]))
    report.add("the Trainer ends with the same weights", None if torch.equal(
        rest.linear.weight, complete.linear.weight) else f"{rest.linear.weight}")


def main():
    report = Report()
    enter(report)
    module = flows()
    imported(Report(), "torch")   # before the loaders, so that batches are its tensors
    with tempfile.TemporaryDirectory() as folder:
        shards = write_shards(folder)
        loader = numbers(module, shards)
        expected = [batch.label.tolist() for _ in range(3) for batch in loader]
        loader.close()
        example(report, folder)
        cpp_extension(report, folder)
        distributed_checkpoint(report, module, shards, expected, folder)
        compiled(report, module, shards)
        stateful(report, module, shards, expected)
        of_lightning(report, module, shards, expected, folder)
        of_accelerate(report, module, shards, expected, folder)
        of_transformers(report, module, shards, expected, folder)
    return report.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--example"]:
        run_example(int(sys.argv[2]), *sys.argv[3:])
    else:
        raise SystemExit(main())
