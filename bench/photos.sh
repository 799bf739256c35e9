#!/bin/sh
# Fetches real photographs for the benchmarks: four Debian packages of desktop wallpapers, unpacked, never installed.
#
#   sh bench/photos.sh                                # into build/bench/data/photos
#   MILLRACE_BENCH_DATA=DIR sh bench/photos.sh        # into DIR/photos
#
# A package that is there already is not fetched again. Its last line is the folder.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/.ci/setup.sh"

packages='lomiri-wallpapers-16.04 lomiri-wallpapers-20.04 mate-backgrounds plasma-workspace-wallpapers'
photos=${MILLRACE_BENCH_DATA:-$root/build/bench/data}/photos
mkdir -p "$photos"

command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 ||
  fail "this is no Debian system: the photographs come from its packages ($packages)" \
    "Any folder of JPEG files will do in their place: put or link them under $photos"

scratch=$photos/.incoming
trap 'rm -rf "$scratch"' EXIT
updated=no
for package in $packages; do
  [ -d "$photos/$package" ] && continue
  say "fetching $package"
  rm -rf "$scratch"
  mkdir -p "$scratch/tree"
  # Root's downloads would otherwise be handed to a user who may not write here.
  fetch() { (cd "$scratch" && apt-get -q -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 download "$package"); }
  if ! fetch; then
    [ "$updated" = no ] || fail "apt-get could not fetch $package; its own message is above"
    say "reading the package lists anew"
    apt_get update || fail "apt-get update failed; is the package mirror within reach?"
    updated=yes
    fetch || fail "apt-get could not fetch $package; its own message is above"
  fi
  dpkg -x "$scratch"/*.deb "$scratch/tree"
  mv "$scratch/tree" "$photos/$package"
done
say "$(find "$photos" -type f \( -iname '*.jpg' -o -iname '*.jpeg' \) | wc -l) photographs in"
printf '%s\n' "$photos"
