#!/bin/sh
# Builds and runs one benchmark, or lists them all:
#
#   sh bench/run.sh                                   # every benchmark and its purpose
#   sh bench/run.sh NAME [--quick] [--json FILE] ...  # the benchmark's own arguments after its name
#
# Installs missing Debian packages and builds a release in build/bench. Benchmarks store their data in the folder
# $MILLRACE_BENCH_DATA, which is build/bench/data by default.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/.ci/setup.sh"

# Each bench/NAME.cpp begins with `// NAME: purpose`.
list() {
  for source in "$root"/bench/*.cpp; do
    [ -f "$source" ] || { echo "  (none yet)"; break; }
    printf '  %-20s %s\n' "$(basename "$source" .cpp)" "$(sed -n '1s/^\/\/ *[A-Za-z0-9_]*: *//p' "$source")"
  done
}

name=${1:-}
case "$name" in
  '' | -h | --help)
    echo "usage: sh bench/run.sh NAME [--quick] [--json FILE] [...]; the benchmarks are:"
    list
    exit 0 ;;
esac
if [ ! -f "$root/bench/$name.cpp" ]; then
  echo "millrace: unknown benchmark '$name'; the benchmarks are:" >&2
  list >&2
  exit 2
fi
shift
# The benchmark `pictures` consists of three programs.
also=
case "$*" in '' | --quick) [ "$name" != pictures ] || also='colors views' ;; esac

install_packages bench
case "$name" in door | remote | peers) install_packages "bench_$name" ;; esac
configure build/bench --buildtype=release -Dwerror=false \
  -Dtests=disabled -Dbench=enabled -Dcuda=auto
for each in $name $also; do
  say "building bench_$each (build/bench)"
  build build/bench "bench/bench_$each"
done
[ "$name" != peers ] || build build/bench examples/repack   # packs the set that loads faster

export MILLRACE_BENCH_DATA="${MILLRACE_BENCH_DATA:-$root/build/bench/data}"
mkdir -p "$MILLRACE_BENCH_DATA"
# For bench/peers/pictures.py, if this Python has Pillow and torchvision.
peers=$root/build/peers/bin/python3
[ ! -x "$peers" ] || export MILLRACE_BENCH_PYTHON="${MILLRACE_BENCH_PYTHON:-$peers}"
if grep -q '^#include "photo_sets.hpp"' "$root/bench/$name.cpp"; then
  # The user's own photographs suffice if Debian's packages are not available.
  sh "$root/bench/photos.sh" ||
    [ -n "$(find -L "$MILLRACE_BENCH_DATA/photos" \( -name '*.jpg' -o -name '*.jpeg' \) 2>/dev/null | head -n 1)" ] ||
    exit 1
fi
for each in $also; do
  say "running bench_$each $*"
  "$root/build/bench/bench/bench_$each" "$@"
done
# A benchmark with programs of other loaders has a script that alternates them.
if [ -f "$root/bench/$name/$name.py" ]; then
  say "running bench/$name/$name.py $*"
  exec python3 "$root/bench/$name/$name.py" "$@"
fi
say "running bench_$name $*"
exec "$root/build/bench/bench/bench_$name" "$@"
