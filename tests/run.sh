#!/bin/sh
# Every test, or some legs of them:
#
#   sh tests/run.sh                                   # all legs; installs missing Debian packages first
#   sh tests/run.sh unit clang                        # these two; tests/legs.py describes each leg
#   sh tests/run.sh fast                              # before a commit: lint, messages of compilers, some unit tests
#
# Prints progress, the wall time and the processor time, and ends with `N passed, N failed, N skipped`, the sum over all
# legs. Fails if anything failed.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/.ci/setup.sh"
# The reference of all types needs far fewer packages than the tests.
[ "$*" = documentation ] && install_packages documentation || install_packages tests
exec python3 "$root/tests/legs.py" "$@"
