#!/bin/sh
# Unpacks Debian's arm64 packages of the libraries, so that cross compilers and qemu-aarch64 find them:
#
#   sysroot=$(sh .ci/sysroot.sh | tail -n 1)          # the last line of the output is the folder
#   sh .ci/sysroot.sh libwebp-dev libcurl4-openssl-dev   # these packages, too
#
# apt-get downloads the packages from this machine's package sources into build/aarch64/packages with its own lists, so
# neither the installed packages nor apt's settings of this machine change. Exit status 77: they cannot be downloaded.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/.ci/setup.sh"

cannot() {
  printf 'millrace: %s\n' "$*" >&2
  exit 77
}

packages="libtbb-dev libjpeg-dev libarchive-dev zlib1g-dev libpng-dev doctest-dev libstdc++6 libc6 $*"
sysroot=$root/build/aarch64/sysroot
release="1 $(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME:-}")"
present=$(sed -n "s/^$release: //p" "$sysroot/.packages" 2>/dev/null || true)
lacking=
for package in $packages; do
  case " $present " in *" $package "*) ;; *) lacking="$lacking $package" ;; esac
done
if [ -z "$lacking" ]; then
  printf '%s\n' "$sysroot"
  exit 0
fi
packages="$present$lacking"
{ command -v apt-get && command -v dpkg-deb; } >/dev/null 2>&1 ||
  cannot "this is not a Debian system, whose arm64 packages contain the libraries"

own=$root/build/aarch64/packages
new=$sysroot.$$
trap 'rm -rf "$new"' EXIT
mkdir -p "$own/lists/partial" "$own/archives/partial" "$new/usr/lib"
: >"$own/status"
own_apt() {
  apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User="$(id -un)" \
    -o Acquire::Retries=3 -o Dir::State="$own" -o Dir::State::lists="$own/lists" -o Dir::State::status="$own/status" \
    -o Dir::Cache="$own" -o Dir::Cache::archives="$own/archives" "$@" </dev/null >"$own/log" 2>&1
}
say "downloading arm64 packages: $packages"
own_apt update || cannot "apt-get update failed for arm64. Check this machine's network; see $own/log."
rm -f "$own"/archives/*.deb
own_apt -y --no-install-recommends --download-only install $packages ||
  cannot "apt-get could not download the arm64 packages. Check this machine's network; see $own/log."

# In older packages lib is a folder. Newer ones expect a link.
ln -s usr/lib "$new/lib"
for package in "$own"/archives/*.deb; do
  case "${package##*/}" in libc6-dev_* | linux-libc-dev_*) continue ;; esac   # the cross compiler has them
  dpkg-deb --fsys-tarfile "$package" | tar -C "$new" --keep-directory-symlink --no-same-owner -xf -
done
rm -f "$own"/archives/*.deb
printf '%s: %s\n' "$release" "$packages" >"$new/.packages"
rm -rf "$sysroot"
mv "$new" "$sysroot"
printf '%s\n' "$sysroot"
