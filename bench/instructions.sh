#!/bin/sh
# Counts the instructions per image or call on aarch64 and on x86-64 with AVX2, under qemu, in thousands:
#
#   sh bench/instructions.sh                           # every row
#   sh bench/instructions.sh exact_M gaussian_blur     # these rows; `rows` lists all
#   sh bench/instructions.sh --only g++ exact_M        # one column: x86, g++ or clang++ (the latter two for aarch64)
#   sh bench/instructions.sh --top 20 exact_M          # also the 20 functions with the most instructions
#   sh bench/instructions.sh --check                   # aarch64, g++: within 3 % of bench/instructions.txt
#   sh bench/instructions.sh --update                  # stores this count in bench/instructions.txt
#
# Rows of images are NAME_SET. NAME: exact and fast (from the file to 224 x 224 pixels, eight images at once), planes
# (the built-in decoder alone), progressive (the same for progressive files), region (libjpeg-turbo decodes the crop, no
# resize). SET: S, M, L (bench/photo_sets.hpp), P (M as progressive files), drawn (without photographs). Other rows: see
# parts/count_pixels.cpp. A count is exact: the same program executes the same instructions on every machine. All
# columns must have the same digests. qemu emulates no AVX-512, and 128-bit SVE. MILLRACE_CLANG=clang++-19 selects
# another clang, whose column is skipped if it is not installed. Needs Debian's qemu-user and g++-aarch64-linux-gnu.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/.ci/setup.sh"
folder=$root/build/instructions
stored=$root/bench/instructions.txt
columns='x86 g++ clang++' top=0 action=table rows=
image_rows='exact_M exact_S exact_L fast_M planes_M region_M progressive_P exact_P exact_drawn'
checked=exact_drawn

while [ $# != 0 ]; do
  case "$1" in
    --only) columns=$2; shift ;;
    --top) top=$2; shift ;;
    --check | --update) action=${1#--} columns=g++ rows=$checked ;;
    -h | --help) sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) rows="$rows $1" ;;
  esac
  shift
done

skip() {
  echo "skipped instructions: $*"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}
[ "$action" = check ] || install_packages instructions
for tool in qemu-aarch64 aarch64-linux-gnu-g++ gcc; do
  command -v "$tool" >/dev/null 2>&1 || skip "there is no $tool (apt-get install g++-aarch64-linux-gnu qemu-user gcc)"
done
sysroot=$(sh "$root/.ci/sysroot.sh" | tail -n 1) || skip "Debian's arm64 packages cannot be downloaded"
clang=${MILLRACE_CLANG:-clang++}
command -v "$clang" >/dev/null 2>&1 || {
  columns=$(echo "$columns" | sed 's/clang++//')
  [ -n "$columns" ] || skip "there is no $clang (apt-get install clang)"
  say "skipped the column of $clang: it is not installed (apt-get install clang)" >&2
}
launcher=$(command -v ccache || true)
export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$root}" CCACHE_NOHASHDIR=1
mkdir -p "$folder"

# The version of the interface of plugins.
version=$(qemu-aarch64 --version | sed -n 's/.* version \([0-9]*\).*/\1/p')
plugin=$folder/libcount.so
gcc -O2 -shared -fPIC -DPLUGIN_VERSION=$((version > 8 ? 2 : 1)) "$root/bench/parts/count_plugin.c" -o "$plugin"

# compiler_of COLUMN: the compiler and its flags for that machine
compiler_of() {
  arm="-isystem $sysroot/usr/include -isystem $sysroot/usr/include/aarch64-linux-gnu"
  case "$1" in
    x86) echo "g++" ;;
    g++) echo "aarch64-linux-gnu-g++ $arm" ;;
    *) echo "$clang --target=aarch64-linux-gnu $arm" ;;
  esac
}

# program COLUMN NAME: builds count_NAME unless this run has done so
program() {
  target=$folder/count_$2.$1
  case " $built " in *" $target "*) return ;; esac
  say "compiling count_$2 with $(compiler_of "$1" | cut -d ' ' -f 1)" >&2
  $launcher $(compiler_of "$1") -std=c++20 -O3 -DNDEBUG -I"$root/include" \
    -c "$root/bench/parts/count_$2.cpp" -o "$target.o"
  libraries=
  [ "$2" = pixels ] || libraries="-ljpeg"
  [ "$1" = x86 ] || libraries="-L$sysroot/usr/lib/aarch64-linux-gnu $libraries"
  $(compiler_of "$1") -static "$target.o" -o "$target" $libraries
  built="$built $target"
}
built=

# counted COLUMN PROGRAM ARGUMENT...: the number of instructions; the output is in $folder/printed
counted() {
  case "$1" in x86) emulator='qemu-x86_64 -cpu max' ;; *) emulator='qemu-aarch64 -cpu max,sve-max-vq=1' ;; esac
  column=$1 name=$2
  shift 2
  $emulator -plugin "$plugin,top=$top" -d plugin "$folder/count_$name.$column" "$@" \
    >"$folder/printed" 2>"$folder/counts" || { cat "$folder/counts" >&2; fail "count_$name $* failed"; }
  sed -n 's/^instructions //p' "$folder/counts"
}

# crops SET: the file of its crops
crops() {
  [ "$1" = drawn ] && echo drawn && return
  file=$folder/$1.crops
  if [ ! -s "$file" ]; then
    export MILLRACE_BENCH_DATA="${MILLRACE_BENCH_DATA:-$root/build/bench/data}"
    sh "$root/bench/photos.sh" >&2
    if [ ! -x "$folder/write_crops" ]; then
      say "compiling write_crops" >&2
      $launcher g++ -std=c++20 -O1 -I"$root/include" -DMILLRACE_BENCH_FLAGS='""' \
        $(pkg-config --cflags tbb libjpeg libarchive zlib) -c "$root/bench/parts/write_crops.cpp" \
        -o "$folder/write_crops.o"
      g++ "$folder/write_crops.o" -o "$folder/write_crops" -pthread $(pkg-config --libs tbb libjpeg libarchive zlib)
    fi
    case "$1" in P) from='M progressive' ;; *) from=$1 ;; esac
    "$folder/write_crops" "${from%% *}" 32 "$file.new" ${from#"${from%% *}"} >&2
    mv "$file.new" "$file"
  fi
  echo "$file"
}

# measure COLUMN ROW: prints thousands of instructions per image or call, and the digest
measure() {
  case " $image_rows " in
    *" $2 "*) name=images times=32 from=$(crops "${2##*_}") task=${2%_*} ;;
    *) name=pixels times=20 from= task=$2 ;;
  esac
  [ "$from" != drawn ] || times=8
  program "$1" "$name"
  nothing=$folder/nothing.$1.$name.${2##*_}
  [ "$name" = images ] || nothing=$folder/nothing.$1.$name
  case " $known " in
    *" $nothing "*) ;;
    *) top_before=$top top=0
       counted "$1" "$name" nothing $from $times >"$nothing"
       top=$top_before known="$known $nothing" ;;
  esac
  all=$(counted "$1" "$name" "$task" $from $times)
  [ "$top" = 0 ] || sed 1d "$folder/counts" >&2
  thousands=$(awk -v all="$all" -v nothing="$(cat "$nothing")" -v times=$times \
    'BEGIN { printf "%.1f", (all - nothing) / times / 1000 }')
  digest=$(sed -n 's/^digest //p' "$folder/printed")
}
known=

if [ "$rows" = ' rows' ] || [ -z "$rows" ]; then
  program x86 pixels
  every="$image_rows $("$folder/count_pixels.x86" rows | sed '/^nothing$/d' | tr '\n' ' ')"
  [ -z "$rows" ] || { echo "$every" | tr ' ' '\n'; exit 0; }
  rows=$every
fi

if [ "$action" != table ]; then
  compiler="g++ $(aarch64-linux-gnu-g++ -dumpversion)"
  measure g++ $checked
  if [ "$action" = update ]; then
    { sed "/^$checked $compiler /d" "$stored"; echo "$checked $compiler $thousands"; } >"$folder/stored"
    cp "$folder/stored" "$stored"
    say "stored: $checked $compiler $thousands"
    exit 0
  fi
  expected=$(sed -n "s/^$checked $compiler //p" "$stored")
  [ -n "$expected" ] || skip "bench/instructions.txt has no count for $compiler (--update stores one)"
  if awk -v a="$thousands" -v b="$expected" 'BEGIN { exit !(a > 0.97 * b && a < 1.03 * b) }'; then
    echo "$checked, $compiler: $thousands thousand instructions per image, stored $expected"
    echo "1 passed, 0 failed, 0 skipped"
    exit 0
  fi
  echo "FAILED $checked, $compiler: got $thousands thousand instructions per image, expected $expected within 3 %." \
    "If the change is intended: sh bench/instructions.sh --update"
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi

failed=0
printf '| %-20s |' "thousands of instructions"
for column in $columns; do
  case "$column" in x86) title='x86-64, g++' ;; clang++) title="aarch64, $clang" ;; *) title="aarch64, $column" ;; esac
  printf ' %16s |' "$title"
done
printf '\n|---|'
for column in $columns; do printf '%s' '---:|'; done
printf '\n'
for row in $rows; do
  line=$(printf '| %-25s |' "$row") first=
  for column in $columns; do
    measure "$column" "$row"
    line="$line $(printf '%16s |' "$thousands")"
    if [ "${first:=$digest}" != "$digest" ]; then
      failed=1 line="$line FAILED: another digest"
    fi
  done
  printf '%s\n' "$line"
done
exit $failed
