#!/bin/sh
# Programs that some tests drive and PyPI does not have: installed with apt as root, named otherwise.
set -u
PATH="$PATH:/usr/sbin:/sbin"

packages=""
# A program the tests look for, and the package that has it.
need() {
  command -v "$1" >/dev/null 2>&1 || packages="$packages ${2:-$1}"
}
need chromium
need tshark
need catior omniorb
need omniNames omniorb-nameserver
need omniidl
need g++
need tc iproute2
[ -e /usr/include/omniORB4/CORBA.h ] || packages="$packages libomniorb4-dev"
[ -n "$packages" ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "Not installed, and only root can with apt:$packages. The tests that need them will be skipped." >&2
  exit 0
fi
echo "Installing$packages with apt."
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages; } >/dev/null 2>&1 ||
  echo "Installing$packages failed. The tests that need them will be skipped." >&2
