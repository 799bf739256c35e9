#!/bin/sh
# Fetches real photographs for the benchmarks: four Debian packages of desktop wallpapers, unpacked, never installed.
#
#   sh bench/photos.sh                                # into build/bench/data/photos
#   MILLRACE_BENCH_DATA=DIR sh bench/photos.sh        # into DIR/photos
#
# An existing package is not fetched again. The last line of the output is the folder.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/.ci/setup.sh"

packages='lomiri-wallpapers-16.04 lomiri-wallpapers-20.04 mate-backgrounds plasma-workspace-wallpapers'
photos=${MILLRACE_BENCH_DATA:-$root/build/bench/data}/photos
mkdir -p "$photos"

command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 ||
  fail "this is not a Debian system, whose packages contain the photographs ($packages)" \
    "Put or link any JPEG files into $photos instead"

scratch=$photos/.incoming
trap 'rm -rf "$scratch"' EXIT
updated=no
for package in $packages; do
  [ -d "$photos/$package" ] && continue
  say "fetching $package"
  rm -rf "$scratch"
  mkdir -p "$scratch/tree"
  # Otherwise apt-get running as root would download as a user who may not write here.
  fetch() { (cd "$scratch" && apt-get -q -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 download "$package"); }
  if ! fetch; then
    [ "$updated" = no ] || fail "apt-get could not fetch $package; its own message is above"
    say "reading the package lists again"
    apt_get update || fail "apt-get update failed; is the package mirror within reach?"
    updated=yes
    fetch || fail "apt-get could not fetch $package; its own message is above"
  fi
  dpkg -x "$scratch"/*.deb "$scratch/tree"
  mv "$scratch/tree" "$photos/$package"
done
say "$(find "$photos" -type f \( -iname '*.jpg' -o -iname '*.jpeg' \) | wc -l) photographs in"
printf '%s\n' "$photos"
