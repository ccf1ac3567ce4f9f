#!/bin/sh
# Compare the .pte files of a change with those of a baseline, and say so on the pull request.
#
# Files are taken, never code: nothing of the change is executed here but its programs, on the devices.
# ETFARM_BASE and ETFARM_HEAD are folders with files of the same names, such as voice-fp16.pte.
# ETFARM_DEVICES: names of devices, separated by spaces. Optional: ETFARM_INVENTORY, ETFARM_SESSIONS, ETFARM_MARGIN,
# ETFARM_FAIL_ON (regression), ETFARM_OUT (etfarm-answers), ETFARM_COMMENTS (URL of the comments), ETFARM_TOKEN.
set -eu
: "${ETFARM_BASE:?name the folder of the baseline}" "${ETFARM_HEAD:?name the folder of the change}"
: "${ETFARM_DEVICES:?name at least one device}"
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
out=${ETFARM_OUT:-etfarm-answers}
mkdir -p "$out"
code=0
found=0
for head in "$ETFARM_HEAD"/*.pte; do
    name=$(basename -- "$head" .pte)
    base=$ETFARM_BASE/$name.pte
    if [ ! -f "$head" ] || [ -L "$head" ]; then continue; fi
    if [ ! -f "$base" ]; then
        printf '**%s is new: the baseline has no such file.**\n' "$name" >"$out/$name.md"
        continue
    fi
    if cmp -s "$base" "$head"; then
        found=$((found + 1))
        printf '**%s is the same program as before; it was not measured.**\n' "$name" >"$out/$name.md"
        echo '[]' >"$out/$name.json"
        continue
    fi
    for device in $ETFARM_DEVICES; do
        found=$((found + 1))
        answer=$out/$name.$device
        status=0
        etfarm compare "$base" "$head" --device "$device" --fail-on "${ETFARM_FAIL_ON:-regression}" \
            --inventory "${ETFARM_INVENTORY:-deployments/inventories/local.yaml}" \
            --sessions "${ETFARM_SESSIONS:-8}" --margin "${ETFARM_MARGIN:-1}" \
            --output "$answer.md" --output "$answer.json" --output "$answer.xml" --output "$answer.svg" \
            2>"$answer.log" >/dev/null || status=$?
        if [ ! -f "$answer.md" ]; then
            printf '**%s on %s could not be compared: %s**\n' "$name" "$device" "$(tail -n 1 "$answer.log")" >"$answer.md"
        fi
        if [ "$status" -gt "$code" ]; then code=$status; fi
    done
done
if [ "$found" -eq 0 ]; then
    echo "etfarm: $ETFARM_HEAD and $ETFARM_BASE have no .pte file of the same name; nothing was compared" >&2
    code=2
fi
python3 "$here/comment.py" "$out"
exit "$code"
