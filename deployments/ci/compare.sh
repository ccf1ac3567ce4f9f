#!/bin/sh
# Compare the .pte files of a change with those of a baseline, and comment on the pull request.
#
# Files are taken, never code: nothing of the change is executed here but its programs, on the devices.
# ETFARM_BASE and ETFARM_HEAD are folders with files of the same names, such as voice-fp16.pte.
# ETFARM_DEVICES: names of devices, separated by spaces; they measure side by side. Optional: ETFARM_INVENTORY,
# ETFARM_SESSIONS, ETFARM_MARGIN, ETFARM_PRIORITY (10: before the nightly sweep), ETFARM_FAIL_ON (regression),
# ETFARM_OUT (etfarm-answers), ETFARM_COMMENTS (URL of the comments), ETFARM_TOKEN.
set -eu
: "${ETFARM_BASE:?name the folder of the baseline}" "${ETFARM_HEAD:?name the folder of the change}"
: "${ETFARM_DEVICES:?name at least one device}"
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
out=${ETFARM_OUT:-etfarm-answers}
mkdir -p "$out"
for old in md json xml svg log note failed; do rm -f "$out"/*."$old"; done
code=0

# Measure one file after the other on a device; return the worst exit code.
measure() {
    worst=0
    for head in "$ETFARM_HEAD"/*.pte; do
        name=$(basename -- "$head" .pte)
        answer=$out/$name.$1
        if [ -e "$out/$name.note" ]; then continue; fi
        status=0
        env -u ETFARM_TOKEN etfarm compare "$ETFARM_BASE/$name.pte" "$head" --device "$1" \
            --fail-on "${ETFARM_FAIL_ON:-regression}" --priority "${ETFARM_PRIORITY:-10}" \
            --inventory "${ETFARM_INVENTORY:-deployments/inventories/local.yaml}" \
            --sessions "${ETFARM_SESSIONS:-8}" --margin "${ETFARM_MARGIN:-1}" \
            --output "$answer.md" --output "$answer.json" --output "$answer.xml" --output "$answer.svg" \
            2>"$answer.log" >/dev/null || status=$?
        if [ ! -f "$answer.json" ]; then
            printf '%s on %s could not be compared: %s' "$name" "$1" "$(tail -n 1 "$answer.log")" >"$answer.failed"
        fi
        if [ "$status" -gt "$worst" ]; then worst=$status; fi
    done
    return "$worst"
}

pairs=0
for head in "$ETFARM_HEAD"/*.pte; do
    name=$(basename -- "$head" .pte)
    base=$ETFARM_BASE/$name.pte
    if [ -L "$head" ] || [ ! -f "$head" ]; then
        echo "$name is not a file" >"$out/$name.note"
    elif [ ! -f "$base" ]; then
        echo "$name is new: the baseline has no such file" >"$out/$name.note"
    else
        pairs=$((pairs + 1))
        if cmp -s "$base" "$head"; then
            echo "$name is the same program as before; it was not measured" >"$out/$name.note"
        fi
    fi
done
if [ "$pairs" -eq 0 ]; then
    echo "etfarm: $ETFARM_HEAD and $ETFARM_BASE have no .pte file of the same name; nothing was compared" >&2
    code=2
fi
running=''
for device in $ETFARM_DEVICES; do
    measure "$device" &
    running="$running $!"
done
for each in $running; do
    status=0
    wait "$each" || status=$?
    if [ "$status" -gt "$code" ]; then code=$status; fi
done
python3 "$here/comment.py" "$out"
exit "$code"
