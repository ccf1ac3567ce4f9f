#!/bin/sh
# Arguments: FOLDER
# Remove the folder of a job unless the job has ended.

[ ! -d "$1" ] || [ -e "$1/job/rc" ] || rm -rf "$1"
