#!/bin/sh
# write_guard GUARD HASHES FILE ...: record the state of the files and their hashes.
# needs: dialect

write_guard() {
    guard=$1; hashes=$2; shift 2
    mkdir -p "${guard%/*}" && printf '%s\n=%s\n' "$(state "$@")" "$hashes" >"$guard.$$" && mv "$guard.$$" "$guard"
}
