#!/bin/sh
# Builds oneTBB with ThreadSanitizer from the source of the installed Debian package. With the package's own library,
# ThreadSanitizer reports many correct programs; with this one it reports none.
#
#   prefix=$(sh tests/system/tsan/one_tbb.sh)   # then PKG_CONFIG_PATH=$prefix/lib/pkgconfig meson setup ...
#
# Needs 20 seconds on two cores the first time and none later. The result is stored outside the clone, in
# ${XDG_CACHE_HOME:-~/.cache}/millrace, one folder for each version of oneTBB and of clang. Prints that folder.
# Needs clang++, cmake, ninja, dpkg-dev and apt's lists of source packages, which it downloads to its own folder. It
# only reads the system's apt configuration.
set -eu

fail() {
  printf 'millrace: %s\n' "$@" >&2
  exit 1
}

version=$(dpkg-query -W -f '${source:Version}' libtbb-dev 2>/dev/null) ||
  fail "libtbb-dev is not installed as a Debian package, so its source cannot be found"
compiler=$(clang++ -dumpversion)
cache=${XDG_CACHE_HOME:-${HOME:-$(cd "$(dirname "$0")/../../.." && pwd)/build}/.cache}/millrace
prefix=$cache/one_tbb-$version-clang-$compiler-tsan
if [ -f "$prefix/lib/pkgconfig/tbb.pc" ]; then
  printf '%s\n' "$prefix"
  exit 0
fi

# Not in the cache, because oneTBB's own build does not support spaces in its path.
work=$(mktemp -d)
trap 'rm -rf "$work" "$prefix.new"' EXIT
trap 'exit 130' INT TERM

# The system's package sources, as source package entries, in both of apt's formats.
mkdir -p "$work/parts" "$work/lists/partial" "$work/cache/archives/partial"
eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
for file in "$list" "$parts"/*.list; do
  [ -f "$file" ] || continue
  sed -n 's/^[[:space:]]*deb[[:space:]]/deb-src /p' "$file" >"$work/parts/$(basename "$file" .list).list"
done
for file in "$parts"/*.sources; do
  [ -f "$file" ] || continue
  sed 's/^[Tt]ypes:.*/Types: deb-src/' "$file" >"$work/parts/$(basename "$file")"
done
cat >"$work/apt.conf" <<EOS
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$work/parts";
Dir::State::lists "$work/lists";
Dir::Cache "$work/cache";
APT::Sandbox::User "$(id -un)";
Acquire::Retries "3";
EOS
export APT_CONFIG="$work/apt.conf"

# Other package sources may fail here. Only oneTBB's source package matters.
apt-get -q update >&2 </dev/null || true
cd "$work"
# Some mirrors lack the description (.dsc) of a point release. The archives suffice, because apt verifies them.
apt-get -q source --download-only "onetbb=$version" >&2 </dev/null || true
[ -f onetbb_*.orig.tar.* ] && [ -f onetbb_*.debian.tar.* ] ||
  fail "apt could not fetch the source of oneTBB $version; is the package mirror within reach?"
{
  mkdir source &&
    tar -C source --strip-components=1 -xf onetbb_*.orig.tar.* &&
    tar -C source -xf onetbb_*.debian.tar.* &&
    if [ -f source/debian/patches/series ]; then
      sed 's/#.*//' source/debian/patches/series | while read -r name _; do
        [ -z "$name" ] || patch -d source -p1 -i "debian/patches/$name" || exit 1
      done
    fi &&
    cmake -G Ninja -S source -B build -DCMAKE_BUILD_TYPE=RelWithDebInfo \
      -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
      -DTBB_SANITIZE=thread -DTBB_STRICT=OFF -DTBBMALLOC_BUILD=OFF -DTBB_TEST=OFF -DTBB_EXAMPLES=OFF &&
    cmake --build build --target tbb
} >&2 </dev/null || fail "oneTBB $version could not be built with ThreadSanitizer"

# Renamed at the end, so that an existing folder is always complete.
rm -rf "$prefix.new"
mkdir -p "$prefix.new/lib/pkgconfig"
cp -R source/include "$prefix.new/include"
cp -P build/*_relwithdebinfo/libtbb.so* "$prefix.new/lib/"
cat >"$prefix.new/lib/pkgconfig/tbb.pc" <<EOS
Name: oneTBB with ThreadSanitizer
Description: built by Millrace's tests from Debian's source package
Version: ${version%%-*}
Libs: "-L$prefix/lib" -ltbb
Cflags: "-I$prefix/include"
EOS
rm -rf "$prefix"
mv "$prefix.new" "$prefix"
printf '%s\n' "$prefix"
