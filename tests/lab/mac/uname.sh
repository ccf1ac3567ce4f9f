#!/bin/sh
# Stand-in of the virtual lab for a Mac's uname: -s -r -m.
case ${1:--s} in
-s) echo Darwin ;;
-r) echo 24.5.0 ;;
-m) echo arm64 ;;
*) echo "uname: illegal option $1" >&2; exit 1 ;;
esac
