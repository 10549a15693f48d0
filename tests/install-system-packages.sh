#!/bin/sh
# Installs the Debian packages that tests use; where that is not possible, says which are missing and goes on:
# the tests that need them are skipped by name.
set -u
missing=""
for package in $(cat "$1"); do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "install ok installed" || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "not installed (no root or no apt):$missing; the tests that need them are skipped"
    exit 0
fi
echo "installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >/dev/null 2>&1
apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 && exit 0
for package in $missing; do
    apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 || echo "could not install $package; the tests that need it are skipped"
done
exit 0
