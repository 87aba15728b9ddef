#!/usr/bin/env bash
# usage: canary.sh REPORT COMMAND ...
# Passes only if COMMAND fails and prints REPORT: the sanitizer saw the planted fault.
report=$1
shift
if output=$("$@" 2>&1); then
  echo "the planted fault went unnoticed: '$*' ended with 0"
  exit 1
fi
grep -q "$report" <<<"$output" && exit 0
printf "'%s' failed without a report of \"%s\":\n%s\n" "$*" "$report" "$output"
exit 1
