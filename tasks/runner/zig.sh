#!/bin/sh
# zig as a compiler that takes GCC's names of processors: -march=armv8.2-a+fp16 is -mcpu=generic+v8_2a+fullfp16 to zig.
# It is copied as `cc` and `c++`. Without -g0, debug information is nine tenths of a runner.
# ZIG is the program; ZIG_TARGET the processor, the system and its C library.

for word; do
    shift
    case $word in
    -march=armv*)
        word=$(echo "$word" | sed -E '
            s/-march=armv([0-9])-a/-mcpu=generic+v\1a/
            s/-march=armv([0-9])\.([0-9])-a/-mcpu=generic+v\1_\2a/
            s/\+fp16(\+|$)/+fullfp16\1/')
        ;;
    esac
    set -- "$@" "$word"
done
exec "$ZIG" "${0##*/}" -g0 -target "$ZIG_TARGET" "$@"
