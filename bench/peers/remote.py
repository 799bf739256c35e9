# Bytes per CPU second of other readers of object stores, on the server and the objects of bench/remote.cpp.
#
#   python3 bench/peers/remote.py webdataset http://127.0.0.1:8080/ photo-set-M/0.tar ...
#   python3 bench/peers/remote.py s3torchconnector http://127.0.0.1:8080 photo-set-M/0.tar ...
#
# webdataset opens `pipe:curl -s URL` for each shard and returns its records; s3torchconnector reads complete objects
# from the bucket that is the first folder of their names. Nothing is decoded. CPU time includes the processes that it
# started. Prints `BYTES SECONDS`, or `skipped` and the reason, in one line.
import os
import subprocess
import sys

from contenders import CONTENDERS
from peers import Skipped, call, last_line, python_of


def cpu_s():
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


def webdataset_bytes(server, names):
    import webdataset
    urls = [f"pipe:curl -s {server}/{name}" for name in names]
    return sum(len(data) for sample in webdataset.WebDataset(urls, shardshuffle=False) for data in sample.values()
               if isinstance(data, bytes))


def s3torchconnector_bytes(server, names):
    from s3torchconnector import S3IterableDataset
    objects = S3IterableDataset.from_objects([f"s3://{name}" for name in names], region="us-east-1", endpoint=server,
                                             transform=lambda opened: len(opened.read()))
    return sum(objects)


def measure(peer, server, names):
    count = {"webdataset": webdataset_bytes, "s3torchconnector": s3torchconnector_bytes}[peer]
    count(server, names[:1])   # loads libraries and starts threads before the measurement
    before = cpu_s()
    print(count(server, names), cpu_s() - before)


def install_and_measure(peer, server, names):
    python = python_of(next(c for c in CONTENDERS if c.environment == "torch"))
    try:
        call("import", [python, "-c", f"import {peer}"], 120)
    except Skipped:
        call("pip", [python, "-m", "pip", "install", "--quiet", peer], 900)
    keys = {"AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything", "AWS_REGION": "us-east-1"}
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run([python, __file__, "--inside", peer, server, *names], env=clean | keys, capture_output=True,
                          text=True, timeout=300)
    if done.returncode != 0:
        raise Skipped(last_line(done.stderr))
    print(last_line(done.stdout))


if __name__ == "__main__":
    try:
        if sys.argv[1] == "--inside":
            measure(sys.argv[2], sys.argv[3].rstrip("/"), sys.argv[4:])
        else:
            install_and_measure(sys.argv[1], sys.argv[2], sys.argv[3:])
    except Skipped as why:
        print("skipped", why)
