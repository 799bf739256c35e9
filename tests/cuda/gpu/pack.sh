#!/bin/sh
# Builds the programs of rows.py with their libraries, for a machine with a GPU on which nothing can be installed.
#
#   sh tests/cuda/gpu/pack.sh .gpu              # for all GPUs
#   sh tests/cuda/gpu/pack.sh .gpu sm_90        # for one architecture: compiles faster
#
# Needs nvcc and the packages of tests/run.sh, but no GPU. The folder contains bin/, lib.tar.xz, python/ and COMMIT. It
# is replaced. Git ignores .gpu. The machine must have at least this machine's version of glibc.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
. "$root/.ci/setup.sh"
[ $# -ge 1 ] || fail "usage: sh tests/cuda/gpu/pack.sh FOLDER [ARCHITECTURE]"
command -v nvcc >/dev/null || fail "nvcc is not in the PATH, and the kernels need it" \
  "Install the CUDA toolkit, and add its bin folder to the PATH."
limit_mib=50
mkdir -p "$1"
target=$(cd "$1" && pwd)
architecture=${2:-all-major}
# Programs of different revisions would crash, and their table would prove nothing.
revision() {
  git -C "$root" rev-parse HEAD
  git -C "$root" diff --quiet HEAD || echo "with uncommitted changes, checksum $(git -C "$root" diff HEAD | cksum)"
}
revision_before=$(revision)
programs="tests/cuda/contract/gpu_contract tests/cuda/contract/gpu_kernels tests/cuda/gpu/gpu_rows bench/bench_h2d
  bench/bench_overlap examples/cuda_trainer examples/train_images"

configure build/gpu --buildtype=release -Dwerror=false -Dcuda=enabled -Dgpu_arch="$architecture" -Dtests=enabled \
  -Djoined_tests=true -Dexamples=enabled -Dbench=enabled
build build/gpu $programs tests/cuda/gpu/flows.abi3.so
[ "$(revision)" = "$revision_before" ] || fail "the sources changed while they were compiled" \
  "Run this again, in a clone that nothing else changes."

rm -rf "$target/bin" "$target/lib.tar.xz" "$target/python" "$target/COMMIT"
libraries=$(mktemp -d)
trap 'rm -rf "$libraries"' EXIT
mkdir "$target/bin" "$target/python"
for program in $programs; do
  strip -o "$target/bin/${program##*/}" "$root/build/gpu/$program"
done
strip -o "$target/python/flows.abi3.so" "$root/build/gpu/tests/cuda/gpu/flows.abi3.so"
cp -R "$root/include/python/millrace" "$target/python/"
rm -rf "$target/python/millrace/__pycache__"

# glibc and the driver belong to the machine. CUPTI is loaded at run time by the name libcupti.so.13 or .12, so ldd does
# not list it. The toolkit may have the same file as libcupti.so.2025.3.0, too.
for file in "$target"/bin/* "$target/python/flows.abi3.so"; do
  needed=$(ldd "$file")
  case $needed in *"not found"*) fail "$file needs a library that is not here:" "$needed" ;; esac
  printf '%s\n' "$needed" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
done | grep -Ev '/(ld-linux.*|lib(c|m|dl|pthread|rt|resolv|util|cuda|nvidia-.*))\.so' | sort -u >"$libraries.list"
cupti=$(find "$(dirname "$(command -v nvcc)")/.." -name 'libcupti.so.1[0-9]' 2>/dev/null | head -n 1)
for library in $(cat "$libraries.list") $cupti; do
  cp -nL "$library" "$libraries/$(basename "$library")"
done
rm -f "$libraries.list"
tar -C "$libraries" -cJf "$target/lib.tar.xz" .

echo "$revision_before" | paste -sd' ' >"$target/COMMIT"
size_mib=$(du -sm "$target" | cut -f1)
[ "$size_mib" -lt "$limit_mib" ] || fail "$target has $size_mib MiB; a machine accepts less than $limit_mib MiB" \
  "Pack one architecture, for example sm_90."
say "$target: $size_mib MiB, $(ls "$target/bin" | wc -l) programs, commit $(cat "$target/COMMIT")"
