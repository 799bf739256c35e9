# The webdataset package's own writer and reader, for reader.py: run by a Python that has the package.
#
#   python wds.py write FOLDER SEED
#   python wds.py read FILE...            # samples as lines, as tests/system/exact/samples.cpp prints them
import random
import sys

import webdataset


def write(folder, seed):
    chance = random.Random(seed)
    with webdataset.ShardWriter(f"{folder}/wds-%03d.tar", maxcount=25, verbose=0) as shards:
        for number in range(100):
            folders = chance.choice(["", "a/", "über/b.c/", "x" * 120 + "/"])
            shards.write({"__key__": f"{folders}{number}", "bin": chance.randbytes(chance.choice([0, 1, 512, 3000])),
                          "cls": number % 10, "json": {"n": number}, "seg.txt": "流" * chance.randrange(300)})
    with webdataset.TarWriter(f"{folder}/wds-ints.tar", mtime=0) as shard:
        for number in range(20):
            shard.write({"__key__": str(number), "txt": str(number)})


def read(files):
    # A list is read as it is, one shard after the other.
    for sample in webdataset.WebDataset(files, shardshuffle=False, empty_check=False):
        words = [sample["__key__"].encode()]
        for name, data in sample.items():
            if not name.startswith("__"):
                words += [name.encode(), data]
        print(" ".join(word.hex() for word in words))


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], int(sys.argv[3]))
    else:
        read(sys.argv[2:])
