#!/bin/sh
# Arguments: FOLDER IDENTITY MACHINE_FOLDER LEASE
# Print `ended`, `unleased` or nothing: see match_job. The lease is only checked.
# needs: job_match

match_job "$@" ""
