#!/bin/sh
# From a fresh clone to a model trained on a stream of images:
#
#   sh examples/quickstart.sh                         # writes a small data set and trains on it
#   sh examples/quickstart.sh -- --data 'my-{000..009}.tar' --epochs 3     # your shards; train_images.cpp has more
#
# Installs missing Debian packages, builds the examples under build/quickstart and runs train_images, which prints last:
# `summary: accuracy=... images_per_second=... data_wait_share=...`.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/.ci/setup.sh"

check_example_arguments 8 "$@"
[ "${1:-}" != -- ] || shift

install_packages build
configure build/quickstart --buildtype=release -Dwerror=false \
  -Dexamples=enabled -Dtests=disabled -Dbench=disabled -Dcuda=auto
say "building the examples in build/quickstart: about a minute on two cores, once"
build build/quickstart examples/train_images examples/make_shapes

say "running train_images $*"
export MILLRACE_EXAMPLE_DATA="${MILLRACE_EXAMPLE_DATA:-$root/build/quickstart/data}"
exec "$root/build/quickstart/examples/train_images" "$@"
