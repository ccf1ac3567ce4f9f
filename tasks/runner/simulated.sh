#!/bin/sh
# The program of simulated devices. It leaves in its working folder what the runner of this machine recorded for the
# same request, and ends after ETFARM_SIMULATED_SECONDS. The first call of a request makes the recording. Its path is the
# flags without folders, since the files of a device are named by their content.
# Every ETDump ends with `simulated` and the name of the session's folder, in MARK_BYTES that no table refers to: the
# warehouse accepts an ETDump only once. In a recording the size in the header includes them.

case $1 in --version | --calibrate) exec @RUNNER@ "$1" ;; esac
MARK_BYTES=64
record() {
    @RUNNER@ "$@" || exit
    part=$recordings/part-$$
    rm -rf "$part"
    mkdir -p "$part" && find . -maxdepth 1 -type f ! -name '*.txt' -exec cp {} "$part" \; || exit 1
    size=$(($(wc -c <model.etdump) - 4 + MARK_BYTES))
    escaped=$(printf '\\%03o' $((size & 255)) $((size >> 8 & 255)) $((size >> 16 & 255)) $((size >> 24 & 255)))
    # shellcheck disable=SC2059 # four bytes as escapes
    printf "$escaped" 1<>"$part/model.etdump"
    if [ -f "$part/stats.json" ]; then
        sed 's/"etdump_crc32": [0-9]*/"etdump_crc32": null/' <stats.json >"$part/stats.json" || exit 1
    fi
    mkdir -p "${recording%/*}" && mv "$part" "$recording" || exit 1
    rm -rf "${recording:?}/${part##*/}"
}
recordings=@RECORDINGS@; recording=$recordings
set -f; IFS=,
for flag; do
    name=${flag%%=*}
    for value in ${flag#"$name"}; do recording=$recording/$name${value##*/}; name=; done
done
recording=$recording/files
set +f; unset IFS
[ -d "$recording" ] || record "$@"
cp "$recording"/*.* . && printf "%-$MARK_BYTES.${MARK_BYTES}s" "simulated ${PWD##*/}" >>model.etdump || exit 1
exec sleep "$ETFARM_SIMULATED_SECONDS"
