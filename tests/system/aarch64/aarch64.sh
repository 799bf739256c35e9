#!/bin/sh
# Checks that the built-in JPEG decoder and the resizer produce the same planes and pixels on an emulated aarch64 as on
# this machine, where the planes are compared with libjpeg's. Ends with `N passed, N failed, N skipped`.
#
#   sh tests/system/aarch64/aarch64.sh [IMAGES]              # default: 1000
#
# Needs Debian's g++-aarch64-linux-gnu and qemu-user; without them it is skipped, by name.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$tool" >/dev/null 2>&1 && continue
  echo "skipped aarch64: there is no $tool (apt-get install g++-aarch64-linux-gnu qemu-user)"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
done
folder=$root/build/aarch64
mkdir -p "$folder"
launcher=$(command -v ccache || true)
flags="-std=c++20 -O1 -Wall -Wextra -Wpedantic -Werror -I$root/include"
$launcher g++ $flags -c "$root/tests/system/aarch64/write_cases.cpp" -o "$folder/write_cases.o"
g++ "$folder/write_cases.o" -ljpeg -o "$folder/write_cases"
$launcher aarch64-linux-gnu-g++ $flags -c "$root/tests/system/aarch64/check_cases.cpp" -o "$folder/check_cases.o"
aarch64-linux-gnu-g++ -static "$folder/check_cases.o" -o "$folder/check_cases"
"$folder/write_cases" "$folder/cases" "${1:-1000}"
qemu-aarch64 "$folder/check_cases" <"$folder/cases"
