#!/bin/sh
# Compare the .pte files of a change with those of a baseline, and comment on the pull request.
#
# Files are taken, never code: nothing of the change is executed here but its programs, on the devices.
# ETFARM_BASE and ETFARM_HEAD are folders with the same names: voice/model.pte in the folder of an export, which states
# modules and expected outputs, or voice.pte alone.
# ETFARM_DEVICES: names of devices, separated by spaces; they measure side by side. Optional: ETFARM_INVENTORY,
# ETFARM_SESSIONS, ETFARM_MARGIN, ETFARM_PRIORITY (10: before the nightly sweep), ETFARM_FAIL_ON (regression; several
# words, separated by spaces), ETFARM_OUT (etfarm-answers), ETFARM_COMMENTS (URL of the comments), ETFARM_TOKEN.
set -eu
: "${ETFARM_BASE:?name the folder of the baseline}" "${ETFARM_HEAD:?name the folder of the change}"
: "${ETFARM_DEVICES:?name at least one device}"
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
out=${ETFARM_OUT:-etfarm-answers}
mkdir -p "$out"
# shellcheck disable=SC2086  # an option for each word
fail_on=$(printf -- ' --fail-on %s' ${ETFARM_FAIL_ON:-regression})
for old in md json xml svg log note failed; do rm -f "$out"/*."$old"; done

model_name() {
    name=${1%.pte}
    printf '%s' "${name%/model}"
}

# Measure one file after the other on a device. The answers, not the exit codes, decide whether the change passes.
measure() {
    for head in "$ETFARM_HEAD"/*.pte "$ETFARM_HEAD"/*/model.pte; do
        file=${head#"$ETFARM_HEAD"/}
        name=$(model_name "$file")
        answer=$out/$name.$1
        if [ ! -e "$head" ] || [ -e "$out/$name.note" ] || [ -e "$out/$name.failed" ]; then continue; fi
        # shellcheck disable=SC2086  # one argument for each word
        env -u ETFARM_TOKEN etfarm compare "$ETFARM_BASE/$file" "$head" --device "$1" \
            $fail_on --priority "${ETFARM_PRIORITY:-10}" \
            --inventory "${ETFARM_INVENTORY:-deployments/inventories/local.yaml}" \
            --sessions "${ETFARM_SESSIONS:-8}" --margin "${ETFARM_MARGIN:-1}" \
            --output "$answer.md" --output "$answer.json" --output "$answer.xml" --output "$answer.svg" \
            2>"$answer.log" >/dev/null || true
        if [ ! -f "$answer.json" ]; then
            printf '%s on %s could not be compared: %s' "$name" "$1" "$(tail -n 1 "$answer.log")" >"$answer.failed"
        fi
    done
}

pairs=0
for head in "$ETFARM_HEAD"/*.pte "$ETFARM_HEAD"/*/model.pte; do
    if [ ! -e "$head" ] && [ ! -L "$head" ]; then continue; fi  # no file matches
    file=${head#"$ETFARM_HEAD"/}
    name=$(model_name "$file")
    base=$ETFARM_BASE/$file
    if [ -L "$ETFARM_HEAD/${file%/*}" ] || [ -L "$head" ] || [ ! -f "$head" ]; then
        echo "$name is not a file" >"$out/$name.failed"
    elif [ -e "$ETFARM_HEAD/$name.pte" ] && [ -e "$ETFARM_HEAD/$name/model.pte" ]; then
        echo "$name is there twice, as $name.pte and as $name/model.pte" >"$out/$name.failed"
    elif [ ! -f "$base" ]; then
        echo "$name is new: the baseline has no such file" >"$out/$name.note"
    else
        pairs=$((pairs + 1))
        if cmp -s "$base" "$head"; then
            echo "$name is the same program as before; it was not measured" >"$out/$name.note"
        fi
    fi
done
for base in "$ETFARM_BASE"/*.pte "$ETFARM_BASE"/*/model.pte; do
    file=${base#"$ETFARM_BASE"/}
    if [ -e "$base" ] && [ ! -e "$ETFARM_HEAD/$file" ]; then
        name=$(model_name "$file")
        echo "$name is gone: the change has no such file" >"$out/$name.gone.note"
    fi
done
if [ "$pairs" -eq 0 ]; then
    echo "etfarm: $ETFARM_HEAD and $ETFARM_BASE have no .pte file of the same name; nothing was compared" >&2
fi
for device in $ETFARM_DEVICES; do
    measure "$device" &
done
wait
exec python3 "$here/comment.py" "$out"
