# A plug-in that uses Millrace can be closed as the README describes: linked with nodelete, or in a host that links TBB.
#
#   python3 tests/contract/install/plug_ins.py
#
# Plug-ins of g++ stay loaded because their template symbols are unique in the process; clang++'s do not.
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from checks import ROOT, WARNINGS, Report, launcher, library_flags

SOURCE = pathlib.Path(__file__).resolve().parent / "plug_in.cpp"
TIMES = 20


def built(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stdout[-3000:])


def problem_with(host, plug_in, expected):
    done = subprocess.run([host, plug_in, str(TIMES)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=900)
    if (done.returncode, done.stdout.strip()) == (0, expected):
        return None
    return f"exit status {done.returncode}, expected 0 and '{expected}'\n{done.stdout[-2000:]}"


def main():
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            built(*launcher(), "clang++", *WARNINGS, "-O0", "-fPIC", f"-I{ROOT / 'include'}",
                  *library_flags("--cflags"), "-c", SOURCE, "-o", folder / "plug_in.o")
            for plug_in, flags in {"plain.so": [], "stays.so": ["-Wl,-z,nodelete"]}.items():
                built("clang++", "-shared", folder / "plug_in.o", *flags, "-o", folder / plug_in,
                      *library_flags("--libs"))
            for host, flags in {"host": [], "host_with_tbb": ["-Wl,--no-as-needed", "-ltbb"]}.items():
                built("clang++", *WARNINGS, "-DHOST", SOURCE, *flags, "-o", folder / host, "-ldl", "-pthread")
        except RuntimeError as problem:
            report.add("the plug-in and its hosts are built", str(problem))
            return report.close()
        report.add("a plug-in linked with -Wl,-z,nodelete", problem_with(folder / "host", folder / "stays.so", "stays"))
        report.add("a plug-in in a host linked with TBB",
                   problem_with(folder / "host_with_tbb", folder / "plain.so", "gone"))
        if sys.argv[1:] == ["--plain"]:   # shows the effect without either
            report.add("a plug-in with neither", problem_with(folder / "host", folder / "plain.so", "gone"))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
