#!/bin/sh
# Runs the README's commands in an empty Debian, which this script creates and removes at the end:
#
#   sh tests/system/bare.sh                           # Debian 12: each command of the README's Start; over an hour
#   sh tests/system/bare.sh trixie                    # Debian 13
#   sh tests/system/bare.sh bookworm quickstart       # the first command, and installing without a network: 3 minutes
#   sh tests/system/bare.sh trixie lint errors        # these legs of tests/run.sh
#   sh tests/system/bare.sh bookworm -c 'sh bench/run.sh pictures --quick'   # this command line
#
# `debootstrap --variant=minbase` installs the empty Debian: no compiler, no recommended packages. It has a clone of
# the current commit. Needs root rights and the right to mount. Packages are downloaded from this machine's package
# sources; build/bare keeps the empty system and the downloads for a week. Ends with `N passed, N failed, N skipped`:
# tests/run.sh adds its own counts, any other command counts as one. Exit status 77: this machine cannot run the checks.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/.ci/setup.sh"

cannot() {
  say "$*"
  exit 77
}

case "${1:-bookworm}" in
  bookworm | trixie) suite=${1:-bookworm} ;;
  -h | --help) sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) fail "unknown Debian '$1': expected bookworm or trixie" ;;
esac
[ $# = 0 ] || shift
[ "${1:-}" != -c ] || [ $# = 2 ] || fail "-c expects one command line, such as -c 'sh bench/run.sh engine --quick'"

[ "$(id -u)" = 0 ] || cannot "an empty Debian needs root rights. Run this as root or with sudo."
{ command -v debootstrap && command -v git; } >/dev/null 2>&1 || install_packages bare
command -v debootstrap >/dev/null 2>&1 || cannot "debootstrap is not installed. Install it with the package manager."
[ -e "$root/.git" ] || cannot "this folder is not a git clone, so there is no commit to test. Run this in a clone."

# One folder for each process that runs this script. Folders of killed processes are removed.
temporary=${TMPDIR:-/tmp}
for old in "$temporary"/millrace-bare.*; do
  if [ -O "$old" ] && ! kill -0 "${old##*.}" 2>/dev/null; then rm -rf --one-file-system "$old"; fi
done
work=$temporary/millrace-bare.$$
mkdir -m 755 "$work" || fail "cannot create the folder $work"
system=$work/root
child=

# All mounts are in a namespace of the child and end with it.
clean_up() {
  trap '' HUP INT TERM
  [ -z "$child" ] || { kill -KILL "$child" 2>/dev/null && wait "$child" 2>/dev/null; } || true
  for attempt in 1 2 3 4 5; do
    rm -rf --one-file-system "$work" 2>/dev/null && return
    sleep 1
  done
  say "could not remove all of $work"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir "$system"
unshare --mount --pid --fork sh -c 'mount -t tmpfs tmpfs "$1" && mount -t proc proc "$1"' sh "$system" 2>/dev/null ||
  cannot "this machine allows no mounts, so an empty Debian cannot run in it. Use a virtual machine, or a container" \
    "with the capability SYS_ADMIN."

# attended COMMAND...: runs it, handles signals meanwhile, and stores its output in $work/printed.
attended() {
  rm -f "$work/pipe"
  mkfifo "$work/pipe"
  tee "$work/printed" <"$work/pipe" &
  printer=$!
  "$@" >"$work/pipe" 2>&1 </dev/null &
  child=$!
  status=0
  wait "$child" || status=$?
  child=
  wait "$printer"
  return "$status"
}

# Debian's sources of this machine, if it is a Debian, as lines for the other release.
sources() {
  own=$(. /etc/os-release && [ "$ID" = debian ] && echo "${VERSION_CODENAME:-}") || return 0
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null | sort -u |
    while read -r address release component; do
      case "$release" in
        "$own" | "$own-updates" | "$own-security") echo "deb $address $suite${release#"$own"} $component" ;;
      esac
    done
}
sources >"$work/sources"
if [ ! -s "$work/sources" ] && command -v apt-get >/dev/null 2>&1; then   # no package lists yet
  apt_get update >"$work/printed" 2>&1 || true
  sources >"$work/sources"
fi
mirror=$(sed -n "s/^deb \([^ ]*\) $suite main$/\1/p" "$work/sources" | head -n 1)
http_proxy=${http_proxy:-$(apt-config shell proxy Acquire::http::Proxy 2>/dev/null | sed "s/^proxy='\(.*\)'$/\1/")}
export http_proxy

make_system() {
  # In its own namespaces, so that its mounts end with it.
  set -- debootstrap --variant=minbase "$suite" "$system" ${mirror:+"$mirror"}
  exec unshare --mount --pid --fork --kill-child "$@"
}
cache=$root/build/bare
mkdir -p "$cache/$suite"
started=$(date +%s)
if [ -n "$(find "$cache/$suite.tar" -mtime -7 2>/dev/null)" ]; then
  say "unpacking the empty $suite of $(date -r "$cache/$suite.tar" '+%Y-%m-%d %H:%M')"
  tar -C "$system" --numeric-owner -xf "$cache/$suite.tar"
else
  say "installing an empty $suite"
  if ! attended make_system; then
    grep -q "Failed getting release file\|Couldn't download" "$work/printed" &&
      cannot "Debian's packages cannot be downloaded, so $suite cannot be installed. Check this machine's network."
    fail "debootstrap could not install an empty $suite; its own message is above"
  fi
  rm -f "$system"/var/cache/apt/archives/*.deb
  (umask 077 && tar -C "$system" --numeric-owner -cf "$cache/$suite.tar.$$" .)
  mv "$cache/$suite.tar.$$" "$cache/$suite.tar"
  rm -rf "$cache/$suite" && mkdir "$cache/$suite"
fi

# Use this machine's package sources, proxies and certificates.
[ ! -s "$work/sources" ] || cp "$work/sources" "$system/etc/apt/sources.list"
apt-config dump 2>/dev/null | grep -E '^Acquire::(http|https|ftp|Proxy|Check|Retries)' \
  >"$system/etc/apt/apt.conf.d/90machine" || true
cp -a /etc/apt/auth.conf /etc/apt/auth.conf.d "$system/etc/apt/" 2>/dev/null || true
cp -L /etc/resolv.conf /etc/hosts "$system/etc/" 2>/dev/null || true
if grep -q '^deb https:' "$work/sources" && [ -f /etc/ssl/certs/ca-certificates.crt ]; then
  cp -L /etc/ssl/certs/ca-certificates.crt "$system/etc/apt/certificates.crt"
  echo 'Acquire::https::CAInfo "/etc/apt/certificates.crt";' >>"$system/etc/apt/apt.conf.d/90machine"
fi
[ ! -f "${PIP_CERT:-}" ] || cp -L "$PIP_CERT" "$system/etc/pip_certificates.crt"

printf '[safe]\n\tdirectory = *\n' >"$work/.gitconfig"   # the clone may be another user's
changed=$(HOME=$work git -C "$root" status --porcelain | wc -l)
[ "$changed" = 0 ] || say "uncommitted changes are not in the clone: $changed files"
HOME=$work git clone -q --depth 1 "file://$root" "$system/millrace" || fail "git could not clone $root"
commit=$(HOME=$work git -C "$root" rev-parse --short HEAD)
say "the empty $suite with a clone of $commit is there after $(($(date +%s) - started)) s"

# inside NETWORK COMMAND...: runs it in the empty system, in its own namespaces. NETWORK --net: without a network.
inside() {
  network=$1
  shift
  exec unshare --mount --pid --fork --kill-child ${network:+"$network"} sh -euc '
    system=$1 archives=$2
    shift 2
    mount -t proc proc "$system/proc"
    mount --rbind /sys "$system/sys"
    mount -t tmpfs -o mode=755 tmpfs "$system/dev"
    for device in null zero full random urandom tty; do
      : >"$system/dev/$device"
      mount --bind "/dev/$device" "$system/dev/$device"
    done
    mkdir "$system/dev/shm" "$system/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$system/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$system/dev/pts"
    ln -s pts/ptmx "$system/dev/ptmx"
    ln -s /proc/self/fd "$system/dev/fd"
    for stream in stdin:0 stdout:1 stderr:2; do ln -s "fd/${stream#*:}" "$system/dev/${stream%:*}"; done
    mount --bind "$archives" "$system/var/cache/apt/archives"
    exec chroot "$system" "$@"' sh "$system" "$cache/$suite" env -i HOME=/root MILLRACE_BARE=1 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin ${http_proxy:+http_proxy="$http_proxy"} \
    ${https_proxy:+https_proxy="$https_proxy"} ${no_proxy:+no_proxy="$no_proxy"} \
    ${PIP_CERT:+PIP_CERT=/etc/pip_certificates.crt} \
    ${OPENBLAS_CORETYPE:+OPENBLAS_CORETYPE="$OPENBLAS_CORETYPE"} "$@"
}

passed=0 failed=0 skipped=0
: >"$work/verdicts"

# try NETWORK COMMAND: runs one command line in the clone and adds its counts, or 1.
try() {
  say "$suite: $2"
  began=$(date +%s)
  status=0
  attended inside "$1" sh -c "cd /millrace && $2" || status=$?
  seconds=$(($(date +%s) - began))
  counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$work/printed" |
    tail -n 1)
  [ -n "$counts" ] || counts="1 0 0"
  if [ "$status" != 0 ]; then
    case "$counts" in
      "1 0 0") counts="0 1 0" ;;
      *" 0 "*) counts="${counts%% *} 1 ${counts##* }" ;;   # it failed, but counted none
    esac
  fi
  verdict="ok" && [ "$status" = 0 ] || verdict="FAILED, exit status $status"
  set -- "$2" $counts
  passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
  say "$suite: $verdict after $seconds s: $1" | tee -a "$work/verdicts"
}

# The README's commands without their trailing comments.
readme_commands() { sed -n "s/^\($1 [^#]*[^# ]\) *\(#.*\)\{0,1\}\$/\1/p" "$system/millrace/README.md"; }
quickstart() {
  try "" "$(readme_commands sh | grep quickstart | head -n 1)"
  # The headers alone: the README says which parts of these commands to omit.
  try --net "$(readme_commands meson | grep -v 'meson compile' |
    sed 's/ -Dcompiled=enabled//; s,build/release,build/headers,' | sed ':a; N; $!ba; s/\n/ \&\& /g')"
  # Not optimized, because that compiles faster. Without dpkg-dev, Meson's libdir is not Debian's.
  try --net "$(readme_commands meson | sed 's/-Dcompiled=enabled/& -Dcompiled_optimization=0 -Ddebug=false/' |
    sed ':a; N; $!ba; s/\n/ \&\& /g') && g++ -std=c++20 tests/contract/install/consumer.cpp \
    \$(pkg-config --cflags --libs millrace-compiled) -o consumer && ./consumer"
}

if [ $# = 0 ]; then
  quickstart
  readme_commands sh | grep -v quickstart >"$work/commands"
  while read -r command <&3; do try "" "$command"; done 3<"$work/commands"
  try "" "sh bench/run.sh engine --quick"   # without a name, the command above lists the benchmarks
elif [ "$1" = quickstart ]; then
  quickstart
  shift
elif [ "$1" = -c ]; then
  try "" "$2"
  shift 2
fi
[ $# = 0 ] || try "" "sh tests/run.sh $*"

say "$suite, minbase, $commit, $(uname -m), $(nproc) cores, $(date '+%Y-%m-%d %H:%M'):"
cat "$work/verdicts"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
