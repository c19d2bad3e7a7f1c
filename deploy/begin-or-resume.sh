#!/bin/sh
# begin-or-resume RUN COMMAND...    COMMAND with --run RUN, or with --resume RUN where that run was begun before
#
# A pod may be started anew at any time, and goes on with what is there. A command that fails is begun again here, up to
# ATTEMPTS times (6), after PAUSE seconds (10) and then twice as long each time: a scheduler may be lost, a store be out
# of reach, and a model whose writer was killed elsewhere is free after three minutes. Wrong usage (exit code 2) is not
# begun again, nor is what was told to end: SIGTERM goes to the command, which puts away what it has.
set -u
run=$1
shift
attempts=${ATTEMPTS:-6}
pause=${PAUSE:-10}
ended=
child=
trap 'ended=yes; [ -z "$child" ] || kill -TERM "$child"' TERM INT

waited() { # for a process of this shell; signals end a wait, but not the process
  while :; do
    wait "$1"
    code=$?
    kill -0 "$1" 2>/dev/null || return "$code"
  done
}

attempt=1
while :; do
  nfs-dask status "$run" >/dev/null 2>&1
  unknown=$?
  [ -z "$ended" ] || exit 143
  if [ "$unknown" -eq 0 ]; then
    # What a run has written is its own: it may have ended between its model and its last word.
    "$@" --resume "$run" --overwrite &
  else
    "$@" --run "$run" &
  fi
  child=$!
  waited "$child"
  code=$?
  case $code in 0 | 2) exit "$code" ;; esac
  if [ -n "$ended" ] || [ "$attempt" -ge "$attempts" ]; then exit "$code"; fi
  echo "begin-or-resume: exit code $code; attempt $((attempt + 1)) of $attempts begins in $pause s" >&2
  sleep "$pause" &
  child=$!
  waited "$child"
  child=
  [ -z "$ended" ] || exit 143
  attempt=$((attempt + 1)) pause=$((pause * 2))
done
