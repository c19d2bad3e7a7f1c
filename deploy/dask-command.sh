#!/bin/sh
# dask-scheduler and dask-worker, which Dask itself no longer has, and which Helm charts and Dask Gateway call all the same.
exec dask "${0##*/dask-}" "$@"
