# Runs one Python program of examples/guide/migration.md for three steps, on a small data set in its loader's format.
#
#   PYTHON tests/contract/readme/migration.py PROGRAM.py FOLDER    # PYTHON has the loader; FOLDER is empty
#
# The program defines train(model). The storage s3://photos is replaced by a folder. readme.py calls this script.
import base64
import io
import os
import pathlib
import sys
import tarfile

STEPS = 3
SHARDS, SAMPLES = 147, 16   # enough that each of 8 worker processes fills a batch of 256
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeXBk"
    "eFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wAARCAAMABAD"
    "ASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAP/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFAEBAAAAAAAAAAAAAAAAAAAABf/EABQRAQAA"
    "AAAAAAAAAAAAAAAAAAD/2gAMAwEAAhEDEQA/AKABiz//2Q==")


class Enough(Exception):
    """The model has completed its steps."""


class Model:
    def __init__(self):
        self.steps = 0

    def step(self, *columns):
        if len(columns[0]) == 0 or any(len(column) != len(columns[0]) for column in columns):
            raise ValueError(f"columns of {[len(column) for column in columns]} rows")
        self.steps += 1
        if self.steps == STEPS:
            raise Enough

    def save(self, state):
        pass


def write_shards():
    for shard in range(SHARDS):
        with tarfile.open(f"train-{shard:03}.tar", "w") as tar:
            for i in range(SAMPLES):
                for field, content in (("jpg", JPEG), ("cls", b"%d" % (i % 10))):
                    member = tarfile.TarInfo(f"{shard}-{i}.{field}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))


def write_lines():
    for i in range(4):
        pathlib.Path(f"corpus-{i:03}.txt").write_text("".join("word " * (1 + n % 40) + "\n" for n in range(1000)))


def write_mds():
    import PIL.Image
    import streaming
    with streaming.MDSWriter(out="photos/train", columns={"image": "jpeg", "label": "int"}) as out:
        for i in range(SHARDS * SAMPLES):
            out.write({"image": PIL.Image.open(io.BytesIO(JPEG)), "label": i % 10})


def write_beton():
    import numpy
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter
    samples = [(numpy.full((32, 40, 3), i % 256, numpy.uint8), i % 10) for i in range(SHARDS * SAMPLES)]
    fields = {"image": RGBImageField(write_mode="jpg"), "label": IntField()}
    DatasetWriter("photos.beton", fields, num_workers=1).from_indexed_dataset(samples)


def main(program, folder):
    source = pathlib.Path(program).read_text()
    os.chdir(folder)
    source = source.replace("s3://photos", f"{os.getcwd()}/photos").replace("/scratch/", f"{os.getcwd()}/scratch/")
    os.environ["NUMBA_NUM_THREADS"] = "8"   # FFCV refuses more workers than this
    write = {"tf.data": write_lines, "from ffcv": write_beton, "from streaming": write_mds}
    next((write[word] for word in write if word in source), write_shards)()
    names = {"__name__": "program"}
    exec(compile(source, program, "exec"), names)
    try:
        names["train"](Model())
    except Enough:
        print(f"{STEPS} steps", flush=True)
        os._exit(0)   # does not wait for worker processes
    print("train() returned", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
