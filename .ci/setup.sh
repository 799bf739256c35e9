# Functions of the commands in examples/, tests/run.sh and bench/run.sh, which source this file. POSIX sh.
#
#   root=$(cd "$(dirname "$0")/.." && pwd) && . "$root/.ci/setup.sh"
#   install_packages build      # build | tests | documentation | bench | bench_NAME | instructions | bare | python
#                               # | python_torch
#   configure build/quickstart -Dtests=disabled
#
# install_packages installs the missing Debian packages. Only the system's package manager installs packages, and only
# sudo may read the terminal, for its password.

say() { printf 'millrace: %s\n' "$*"; }

fail() {
  printf 'millrace: %s\n' "$@" >&2
  exit 1
}

# check_example_arguments LAST [ARGUMENT...]: for scripts whose arguments for an example follow --. -h prints the
# comment in lines 2 to LAST of the script. Every other argument fails.
check_example_arguments() {
  last_line=$1
  shift
  case "${1:-}" in
    '' | --) ;;
    -h | --help) sed -n "2,${last_line}s/^# \{0,1\}//p" "$0"; exit 0 ;;
    *) fail "unknown argument '$1'" "Arguments for the example come after --, as in: sh $0 -- $*" ;;
  esac
}

jobs=$(nproc 2>/dev/null || echo 2)

# The compiler reports its headers to ccache, which then does not run the preprocessor.
export CCACHE_DEPEND=1

# The sanitizer libraries belong to one version of clang: the default one of the system.
clang_runtime() {
  version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9][0-9]*\)$/\1/p' | head -n 1)
  echo "libclang-rt-${version:-14}-dev"
}

packages_for() {
  case "$1" in
    bare) echo debootstrap git mount; return ;;
    documentation) echo doxygen python3; return ;;
    python) echo g++ python3-dev python3-venv libtbb-dev libjpeg-dev libarchive-dev zlib1g-dev; return ;;
    python_torch) echo python3-torch python3-numpy; return ;;
  esac
  echo g++ meson ninja-build pkg-config ccache libtbb-dev libjpeg-dev libarchive-dev zlib1g-dev
  if [ "$1" = tests ]; then
    echo clang llvm doctest-dev python3 python3-dev python3-dbg python3-numpy python3-pil cmake dpkg-dev \
      gzip bzip2 xz-utils zstd lz4 \
      libopenmpi-dev openmpi-bin libsimdjson-dev libsentencepiece-dev libwebp-dev libsndfile1-dev libsoxr-dev \
      libmicrohttpd-dev \
      doxygen libdlpack-dev \
      libcurl4-openssl-dev libssl-dev nginx-light openssl zlib1g-dev \
      libtorch-dev python3-torch python3-pip libopencv-core-dev libopencv-imgcodecs-dev \
      libdlib-dev libblas-dev liblapack-dev libpng-dev libsqlite3-dev   # dependencies in dlib.pc
    # An emulated aarch64.
    [ "$(uname -m)" = aarch64 ] || echo g++-aarch64-linux-gnu qemu-user
    # A separate package in Debian 12 and later; apt-cache needs its package lists to name it.
    clang_runtime
    # The newest compiler of the recipes in tests/contract/readme, in systems that have its package.
    ! apt-cache show clang-19 >/dev/null 2>&1 || echo clang-19
    # The version whose format tests/contract/lint/format.py requires.
    ! apt-cache show clang-format-19 >/dev/null 2>&1 || echo clang-format-19
  fi
  # Libraries of all benchmarks, for one configuration; then the programs of two benchmarks.
  if [ "$1" = bench ]; then
    echo libsentencepiece-dev libpng-dev libcurl4-openssl-dev libssl-dev libmicrohttpd-dev
  fi
  [ "$1" != instructions ] || echo g++-aarch64-linux-gnu qemu-user
  [ "$1" != bench_door ] || echo python3-dev python3-numpy
  [ "$1" != bench_remote ] || echo curl nginx-light openssl python3-venv
  # Build dependencies of FFCV, and the decoder of SPDL.
  [ "$1" != bench_peers ] || echo python3-venv python3-dev libopencv-dev libturbojpeg0-dev ffmpeg
}

missing_packages() {
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s ' "$package"
  done
}

# Other systems have other package names: search for the programs and libraries.
check_other_system() {
  lacking=
  for tool in g++ meson ninja pkg-config; do
    command -v "$tool" >/dev/null 2>&1 || lacking="$lacking $tool"
  done
  for library in tbb libjpeg libarchive zlib; do
    pkg-config --exists "$library" 2>/dev/null || lacking="$lacking $library"
  done
  if [ "$1" = tests ]; then
    for tool in clang++ cmake python3; do
      command -v "$tool" >/dev/null 2>&1 || lacking="$lacking $tool"
    done
  fi
  [ -z "$lacking" ] || fail "missing on this system, which is not a Debian system:$lacking" \
    "Install them with this system's package manager (libraries with their headers), then run this again."
}

# Runs apt-get as root, or through sudo.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  elif [ -t 0 ]; then
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  else
    sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
  fi
}

apt_get() {
  as_root apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null
}

install_packages() {
  if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-query >/dev/null 2>&1; then
    check_other_system "$1"
    return
  fi
  missing=$(missing_packages $(packages_for "$1"))
  [ -n "$missing" ] || return 0

  by_hand="To install them manually, as root: apt-get update && apt-get install $missing"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 ||
      fail "these packages are missing, and without root or sudo they cannot be installed: $missing" "$by_hand"
    [ -t 0 ] || sudo -n true 2>/dev/null ||
      fail "these packages are missing: $missing" \
        "sudo needs a password or refuses this user, and no terminal is open. Run this in a terminal." \
        "$by_hand"
  fi
  say "installing Debian packages: $missing"
  for attempt in 1 2; do
    if apt_get update && missing=$(missing_packages $(packages_for "$1")) &&
      apt_get install -y --no-install-recommends $missing; then
      return 0
    fi
    [ "$attempt" = 2 ] || { say "apt-get failed; one more attempt in 10 seconds"; sleep 10; }
  done
  fail "apt-get could not install: $missing" "Its message is above; is the package mirror reachable?" "$by_hand"
}

# configure DIR OPTIONS...: configures a Meson build folder below the root with exactly these options. A folder with
# other options, an incomplete one, and one of another Meson or root are configured again; data in it is preserved.
configure() {
  folder=$root/$1
  shift
  stamp="$(meson --version) $root ${CXX:-} ${PKG_CONFIG_PATH:-} $*"
  if [ -f "$folder/build.ninja" ] && [ "$(cat "$folder/.configured" 2>/dev/null)" = "$stamp" ]; then
    return 0
  fi
  say "configuring ${folder#"$root/"}"
  rm -rf "$folder/meson-private" "$folder/build.ninja"
  mkdir -p "$folder" || fail "cannot write to $folder: does it belong to another user?"
  if ! meson setup "$@" "$folder" "$root" >"$folder.log" 2>&1 </dev/null; then
    tail -n 20 "$folder.log" >&2
    fail "Meson could not configure ${folder#"$root/"}; its output is in ${folder#"$root/"}.log"
  fi
  printf '%s\n' "$stamp" >"$folder/.configured"
}

# build DIR TARGET...: with one line of progress per step.
build() {
  folder=$root/$1
  shift
  ninja -C "$folder" -j "$jobs" "$@" </dev/null || fail "the build failed; the compiler's message is above"
}
