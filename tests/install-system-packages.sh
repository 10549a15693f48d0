#!/bin/sh
# Installs the Debian packages that tests use: `install-system-packages.sh LIST STAMP`. Where that is not possible, it says
# which are missing and goes on: the tests that need them are skipped by name. The stamp is made when all of them are there,
# and only then: otherwise the next run asks again.
set -u
list=$1 stamp=$2
deadline=$(($(date +%s) + ${APT_WAIT_SECONDS:-300})) # for another program that uses apt just now
said=$(mktemp) || exit 1
trap 'rm -f "$said"' EXIT

missing() {
    for package in $(cat "$list"); do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "install ok installed" || printf ' %s' "$package"
    done
}

# apt waits for dpkg's lock when it is told to, but not for those of its lists and archives: we ask again for all of them.
apt() {
    until apt-get -qq -o DPkg::Lock::Timeout=0 "$@" >"$said" 2>&1; do
        grep -qi "could not get lock\|unable to lock\|unable to acquire" "$said" || return 1
        [ "$(date +%s)" -lt "$deadline" ] || return 1
        sleep 1
    done
}

packages=$(missing)
if [ -n "$packages" ]; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "not installed (no root or no apt):$packages; the tests that need them are skipped"
        exit 0
    fi
    echo "installing$packages"
    export DEBIAN_FRONTEND=noninteractive
    apt update || echo "the package lists cannot be brought up to date: $(tail -n 1 "$said")"
    if ! apt install -y --no-install-recommends $packages; then
        for package in $packages; do
            apt install -y --no-install-recommends "$package" ||
                echo "could not install $package: $(tail -n 1 "$said"); the tests that need it are skipped"
        done
    fi
fi
if [ -n "$(missing)" ]; then
    echo "still missing:$(missing); asked again next time"
else
    touch "$stamp"
fi
