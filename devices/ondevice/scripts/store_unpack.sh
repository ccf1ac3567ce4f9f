#!/bin/sh
# Arguments: TAR PART NAME ...
# Unpack an uploaded archive into the folder PART and print the hashes of the named files.
# needs: dialect

tar=$1; part=$2; shift 2
mkdir -p "$part" && cd "$part" && tar -xf "$tar" || exit 1
rm -f "$tar"
sha256 "$@"
