#!/bin/sh
# Programs that some tests drive and PyPI does not have: installed with apt as root, named otherwise. Two more come into
# build/tools, without being installed: promtool, as the package that has it starts a server, and axe-core from npm.
set -u
PATH="$PATH:/usr/sbin:/sbin"
tools="$(dirname "$0")/../build/tools"
axe=axe-core@4.14.0

packages=""
# A program the tests look for, and the package that has it.
need() {
  command -v "$1" >/dev/null 2>&1 || packages="$packages ${2:-$1}"
}

install_packages() {
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "Not installed, and only root can with apt:$packages. The tests that need them will be skipped." >&2
    return
  fi
  echo "Installing$packages with apt."
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages; } >/dev/null 2>&1 ||
    echo "Installing$packages failed. The tests that need them will be skipped." >&2
}

# Out of Debian's package, as any user.
fetch_promtool() {
  scratch=$(mktemp -d)
  (
    cd "$scratch" && timeout 120 apt-get download -qq -o APT::Sandbox::User=root -o Acquire::Retries=0 prometheus &&
      dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool
  ) >/dev/null 2>&1 && mkdir -p "$tools" && mv "$scratch/usr/bin/promtool" "$tools/promtool"
  rm -rf "$scratch"
}

fetch_axe() {
  mkdir -p "$tools" && timeout 60 npm install --silent --no-save --no-audit --no-fund --fetch-retries=0 --fetch-timeout=20000 \
    --prefix "$tools" "$axe" >/dev/null 2>&1
}

need chromium
need tshark
need catior omniorb
need omniNames omniorb-nameserver
need omniidl
need g++
need tc iproute2
[ -e /usr/include/omniORB4/CORBA.h ] || packages="$packages libomniorb4-dev"
[ -z "$packages" ] || install_packages

if ! command -v promtool >/dev/null 2>&1 && [ ! -x "$tools/promtool" ] && command -v apt-get >/dev/null 2>&1; then
  fetch_promtool || echo "promtool could not be fetched. The test that needs it will be skipped." >&2
fi
if [ ! -e "$tools/node_modules/axe-core/axe.min.js" ] && command -v npm >/dev/null 2>&1; then
  fetch_axe || echo "axe-core could not be fetched with npm. The tests that need it will be skipped." >&2
fi
exit 0
