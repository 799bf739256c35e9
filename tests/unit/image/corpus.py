# The built-in decoder's planes against jpeg_read_raw_data on a generated corpus: every sampling, sizes of 1 to 64,
# qualities of 1 to 100, restart intervals, optimised and standard tables; random crops, each alone and with a random
# partner. The same for entry points: files with random restart intervals, and with right and wrong entries.
#
#   python3 tests/unit/image/corpus.py   # 200,000 images with a crop; a minute on one core
#   python3 tests/unit/image/corpus.py --entries 200000                 # as many with entries; ten minutes more
#   python3 tests/unit/image/corpus.py --crops 2000000 --compiler clang++ --seed 7
#   python3 tests/unit/image/corpus.py --progressive 100000             # any scans that libjpeg can write, and damage
#   python3 tests/unit/image/corpus.py --photos build/bench/data        # all photographs there, those in shards too
#
# For photographs the final pixels are compared as well. Ends with `N passed, N failed, N skipped`.
import argparse
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, WARNINGS, Report, launcher, library_flags

FOLDER = ROOT / "build" / "corpus"
PLANES, PICTURES, ENTRIES = (
    "jpeg/baseline/jpeg_plane_decoder_test", "render/picture_decoders_test", "jpeg/jpeg_entries_test")
PROGRESSIVE = "jpeg/progressive/progressive_decoder_test"


def compiled(name, compiler):
    program = FOLDER / f"{pathlib.Path(name).name} {compiler}"
    objects = []
    for source in (ROOT / "tests" / "main.cpp", ROOT / "tests" / "unit" / "image" / f"{name}.cpp"):
        objects.append(FOLDER / f"{source.stem} {compiler}.o")
        subprocess.run([*launcher(), compiler, *WARNINGS, "-O2", f"-I{ROOT / 'include'}", *library_flags("--cflags"),
                        "-c", source, "-o", objects[-1]], check=True)
    subprocess.run([compiler, *objects, *library_flags("--libs"), "-o", program], check=True)
    return program


def check(report, program, case, **environment):
    done = subprocess.run([program, f"--test-case={case}", "--duration"], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, env=os.environ | environment)
    ran = "1 passed | 0 failed" in done.stdout
    if ran:
        print(done.stdout.strip())
    report.add(f"{program.name}, {case}", None if done.returncode == 0 and ran else done.stdout)


def unpacked(folder, to):
    """The folder's own JPEG files are linked, those in its shards are written."""
    for path in sorted(folder.rglob("*")):
        name = "-".join(path.relative_to(folder).parts)
        if path.suffix in (".jpg", ".jpeg"):
            (to / name).symlink_to(path.resolve())
        if path.suffix != ".tar":
            continue
        with tarfile.open(path) as shard:
            for member in shard:
                if member.name.endswith((".jpg", ".jpeg")):
                    (to / f"{name}-{member.name.replace('/', '-')}").write_bytes(shard.extractfile(member).read())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--crops", type=int, default=200_000)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--photos", type=pathlib.Path)
    parser.add_argument("--progressive", type=int, metavar="FILES")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    report = Report()
    if options.progressive:
        progressive = compiled(PROGRESSIVE, options.compiler)
        check(report, progressive, "planes of progressive files*", MILLRACE_TEST_PICTURES=str(options.progressive),
              MILLRACE_TEST_SEED=options.seed)
        check(report, progressive, "damaged progressive files*", MILLRACE_TEST_DAMAGED=str(options.progressive),
              MILLRACE_TEST_SEED=options.seed)
        return report.close()
    planes = compiled(PLANES, options.compiler)
    if not options.photos:
        check(report, planes, "planes are those of libjpeg*", MILLRACE_TEST_PICTURES=str(options.crops),
              MILLRACE_TEST_SEED=options.seed)
        check(report, compiled(ENTRIES, options.compiler), "entries never change a plane*",
              MILLRACE_TEST_ENTRIES=str(options.entries), MILLRACE_TEST_SEED=options.seed)
        return report.close()
    pictures = compiled(PICTURES, options.compiler)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        unpacked(options.photos, pathlib.Path(folder))
        for program, case in (planes, "planes of photographs*"), (pictures, "both decoders*photographs"):
            check(report, program, case, MILLRACE_TEST_PHOTOS=folder, MILLRACE_TEST_SEED=options.seed)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
