#!/bin/sh
# Builds the library that `hyperslab run` preloads, and puts it beside hyperslab._core, where wheels take it from.
# Arguments go to cargo; without any, it builds a release. Other systems than Linux have no such library.
set -e
[ "$(uname -s)" = Linux ] || exit 0
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- --release --locked --quiet
cargo build --package hyperslab-preload "$@"
folder=debug
for argument; do [ "$argument" = --release ] && folder=release; done
# Renamed, not overwritten: running programs may have it loaded.
target=python/hyperslab/libhyperslab_preload.so
cp "${CARGO_TARGET_DIR:-target}/$folder/libhyperslab_preload.so" "$target.new"
mv "$target.new" "$target"
