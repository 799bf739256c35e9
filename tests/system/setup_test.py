# The messages of .ci/setup.sh if it cannot install packages. The test replaces the commands that it calls.
#
#   python3 tests/system/setup_test.py
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from checks import ROOT, Report

NOT_INSTALLED = "exit 1"


def outcome_of(**commands):
    """Status and output of install_packages with these commands, without a terminal."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in commands.items():
            command = pathlib.Path(folder) / name
            command.write_text(f"#!/bin/sh\n{text}\n")
            command.chmod(0o755)
        done = subprocess.run(["sh", "-c", '. "$1/.ci/setup.sh"; sleep() { :; }; install_packages build', "sh", ROOT],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"})
    return done.returncode, done.stdout


def expect(report, name, outcome, words, without):
    status, text = outcome
    good = status != 0 and all(word in text for word in words) and not any(word in text for word in without)
    report.add(name, None if good else f"exit status {status}: {text}")


def main():
    report = Report()
    user = {"id": "echo 1000", "dpkg-query": NOT_INSTALLED, "apt-get": "exit 100"}
    expect(report, "the message names a sudo that needs a password, and no mirror",
           outcome_of(**user, sudo='echo "sudo: a password is required" >&2; exit 1'),
           ["sudo needs a password", "apt-get install g++"], ["mirror", "one more attempt"])
    expect(report, "a working sudo is used, and the message names a failing mirror", outcome_of(
        **user, sudo='[ "$1" != -n ] || shift; exec "$@"'), ["package mirror"], ["password"])
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
