# The protocols decode-memory and loader-supply of imread-benchmark, with its code, for Millrace's decoder and others:
#
#   git clone https://github.com/ternaus/imread_benchmark        # the protocols are in version 0.2 and later
#   sh bench/run.sh peers --quick --only torchvision             # creates the environment and the photographs
#   build/peers/env/torch/bin/pip install ./imread_benchmark -e bench/peers/imread simplejpeg opencv-python-headless
#   build/peers/env/torch/bin/python bench/peers/imread.py --set M --rounds 3
#
# decode-memory decodes JPEGs in memory, one after the other, to RGB arrays. loader-supply does so in the two workers of
# a DataLoader. All decoders return all pixels, so that this compares decoders, not crops or sessions. Each run is a
# fresh process; decoders alternate. Prints images per second of wall time, as the benchmark defines them, and images
# per CPU second of all processes, for the complete run with its validation and warm-up; for loader-supply, the start of
# the workers is included, which hides the differences if there are few --images.
import argparse
import hashlib
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tarfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("MILLRACE_BENCH_DATA", ROOT / "build" / "bench" / "data"))
DECODERS = ("millrace", "torchvision", "simplejpeg", "opencv", "pillow")
PROTOCOLS = {"decode-memory": {}, "loader-supply": {
    "num_workers": 2, "batch_size": 8, "prefetch_factor": 2, "persistent_workers": True,
    "multiprocessing_start_method": "spawn"}}
WARM_UP, TIMED = 1, 3


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--set", default="M", choices=["S", "M", "L"])
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--decoder", action="append", choices=DECODERS)
    parser.add_argument("--run", help=argparse.SUPPRESS)   # DECODER PROTOCOL, in a process for that run
    return parser.parse_args()


def items_of(name, count):
    from imread_benchmark.datasets.package import ResidentItem
    items = []
    for shard in sorted((DATA / f"photo-set-{name}").glob("*.tar")):
        with tarfile.open(shard) as tar:
            for member in tar:
                if member.name.endswith(".jpg") and len(items) < count:
                    data = tar.extractfile(member).read()
                    digest = hashlib.sha256(data).hexdigest()
                    items.append(ResidentItem(digest, member.name, digest, len(data), data))
    if not items:
        sys.exit(f"no photographs in {DATA}: run sh bench/run.sh peers --quick --only torchvision")
    return tuple(items)


def cpu_seconds():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def run_one(decoder_id, protocol, items):
    """Measures by the functions of imread-benchmark, and prints one line of JSON."""
    from imread_benchmark.decoders import REGISTRY
    from imread_benchmark.execution.loader_measurement import run_loader_supply_measurement
    from imread_benchmark.execution.measurement import configure_decoder, run_decode_memory_measurement
    from imread_benchmark.plans import RunConfiguration
    digest = hashlib.sha256(b"".join(item.data for item in items)).hexdigest()
    no_loader = {"num_workers": None, "batch_size": None, "prefetch_factor": None, "persistent_workers": False,
                 "multiprocessing_start_method": None}
    configuration = RunConfiguration(
        protocol_id=protocol, decoder_id=decoder_id, package_id=digest, manifest_id=digest, selection_id=digest,
        requested_threads=1 if decoder_id in ("torchvision", "opencv") else None, logical_repeat_factor=1,
        warmup_passes=WARM_UP, timed_passes_per_run=TIMED, minimum_timed_seconds=0.001,
        output_contract="normalized-rgb", support_policy="common", **(no_loader | PROTOCOLS[protocol]))
    decoder = REGISTRY[decoder_id]()
    decoder.decode(items[0].data)   # imports
    before = cpu_seconds()
    if protocol == "decode-memory":
        threads = configure_decoder(decoder, configuration.requested_threads)
        result = run_decode_memory_measurement(decoder, items, configuration, effective_threads=threads)
    else:
        result = run_loader_supply_measurement(items, configuration)
        time.sleep(0.2)   # its workers end
    images = len(items) * (1 + WARM_UP + TIMED)
    print(json.dumps({"wall": statistics.median(s.items_processed / s.elapsed_seconds for s in result.samples),
                      "cpu": images / (cpu_seconds() - before)}))


def spread(values):
    return f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def main():
    a = arguments()
    if a.run:
        return run_one(*a.run.split(), items_of(a.set, a.images))
    os.environ.setdefault("MILLRACE_PACKAGE", str(ROOT / "include" / "python"))
    os.environ.setdefault("MILLRACE_CACHE", str(ROOT / "build" / "peers" / "millrace"))
    runs = {}
    for _ in range(a.rounds):
        for protocol in PROTOCOLS:
            for decoder in a.decoder or DECODERS:
                done = subprocess.run([sys.executable, __file__, "--set", a.set, "--images", str(a.images), "--run",
                                       f"{decoder} {protocol}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True)
                if done.returncode != 0:
                    print(f"skipped {decoder}, {protocol}: {(done.stderr.strip().splitlines() or ['no output'])[-1]}")
                    continue
                runs.setdefault((decoder, protocol), []).append(json.loads(done.stdout.splitlines()[-1]))
    print(f"\nSet {a.set}, {a.images} photographs, {a.rounds} rounds, load "
          f"{pathlib.Path('/proc/loadavg').read_text().split()[0]}: median (range)\n")
    print("| protocol | decoder | images per CPU second | images per second |\n|---|---|---|---|")
    for (decoder, protocol), of_run in sorted(runs.items(), key=lambda item: item[0][1]):
        cpu, wall = ([run[kind] for run in of_run] for kind in ("cpu", "wall"))
        print(f"| {protocol} | {decoder} | {spread(cpu)} | {spread(wall)} |")
    return 0 if runs else 1


if __name__ == "__main__":
    sys.exit(main())
