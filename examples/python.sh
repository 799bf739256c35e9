#!/bin/sh
# From a fresh clone to a model that PyTorch trains, in a virtual environment:
#
#   sh examples/python.sh                             # writes a small data set and trains on it
#   sh examples/python.sh -- --epochs 20              # options of examples/python/train_torch.py
#   MILLRACE_TORCH=debian sh examples/python.sh       # Debian's PyTorch: a smaller download, an older version
#
# Installs missing Debian packages, and PyTorch from PyPI if it can be reached, otherwise from Debian. All other files
# are in build/python_example: the environment, the compiled flow, the data set, and the checkpoint, with which the
# next run continues.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/.ci/setup.sh"

check_example_arguments 10 "$@"
[ "${1:-}" != -- ] || shift

folder=$root/build/python_example
python=$folder/venv/bin/python
export PYTHONPATH="$root/include/python" MILLRACE_CACHE="$folder/cache"
install_packages python
mkdir -p "$folder/data"

if ! "$python" -c 'import torch, numpy' 2>/dev/null; then
  python3 -m venv --clear "$folder/venv"
  pip() { "$python" -m pip -q --disable-pip-version-check "$@"; }
  if [ "${MILLRACE_TORCH:-pypi}" = pypi ] &&
    pip download --retries 1 --timeout 20 --no-deps -d "$folder" typing_extensions; then   # a small file
    say "PyTorch from PyPI: about 3 GB to download on x86_64, with the libraries for GPUs." \
      "MILLRACE_TORCH=debian selects Debian's PyTorch."
    pip install torch numpy
  else
    bytes=$(apt-get install -qq --print-uris --no-install-recommends $(packages_for python_torch) |
      awk '{ sum += $3 } END { print int(sum / 1e6) }')
    say "PyTorch from Debian: $bytes MB to download"
    install_packages python_torch
    python3 -m venv --clear --system-site-packages "$folder/venv"
  fi
fi

if [ ! -f "$folder/patterns" ]; then
  say "writing a data set of shapes to $folder/data"
  g++ -std=c++20 -O1 -I"$root/include" "$root/examples/make_shapes.cpp" -o "$folder/make_shapes" \
    -ltbb -ljpeg -larchive -lz
  "$folder/make_shapes" "$folder/data" >"$folder/patterns.new"
  mv "$folder/patterns.new" "$folder/patterns"
fi
say "training with examples/python/train_torch.py $*"
exec "$python" "$root/examples/python/train_torch.py" "$(sed -n 's/^train: //p' "$folder/patterns")" \
  "$(sed -n 's/^validation: //p' "$folder/patterns")" --checkpoint "$folder/checkpoint.pt" "$@"
