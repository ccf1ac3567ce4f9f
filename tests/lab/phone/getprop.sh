#!/bin/sh
# Stand-in of the virtual lab for Android's getprop: getprop [NAME [DEFAULT]], read from /system/build.prop.
while IFS='=' read -r name value; do
    case $name in '' | '#'*) continue ;; esac
    if [ -z "$1" ]; then
        echo "[$name]: [$value]"
    elif [ "$name" = "$1" ]; then
        echo "$value"
        exit 0
    fi
done </system/build.prop
[ -z "$1" ] || echo "$2"
