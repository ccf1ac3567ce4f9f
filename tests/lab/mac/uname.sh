#!/bin/sh
# Stand-in of the virtual lab for a Mac's uname: -s -n -r -m -a.
case ${1:--s} in
-s) echo Darwin ;;
-n) hostname ;;
-r) echo 24.5.0 ;;
-m) echo arm64 ;;
-a) echo "Darwin $(hostname) 24.5.0 Darwin Kernel Version 24.5.0 arm64" ;;
*) echo "uname: illegal option $1" >&2; exit 1 ;;
esac
