#!/bin/sh
# Stand-in of the virtual lab for macOS's sw_vers.
printf 'ProductName:\t\tmacOS\nProductVersion:\t\t15.5\nBuildVersion:\t\t24F74\n'
