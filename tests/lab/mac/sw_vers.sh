#!/bin/sh
# Stand-in of the virtual lab for macOS's sw_vers.
case $1 in
'') printf 'ProductName:\t\tmacOS\nProductVersion:\t\t15.5\nBuildVersion:\t\t24F74\n' ;;
-productName | --productName) echo macOS ;;
-productVersion | --productVersion) echo 15.5 ;;
-buildVersion | --buildVersion) echo 24F74 ;;
*) echo "sw_vers: unknown option $1" >&2; exit 1 ;;
esac
