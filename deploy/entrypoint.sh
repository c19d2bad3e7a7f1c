#!/bin/sh
# Numba reads a cache only where it can also write. So the one that came with the image is copied to a place where it can;
# without such a place everything works just as well, after a second or two of compiling.
set -eu
if [ ! -e "$NUMBA_CACHE_DIR" ]; then
  cp -R /opt/nfs-dask/numba "$NUMBA_CACHE_DIR" 2>/dev/null || echo "entrypoint: $NUMBA_CACHE_DIR cannot be written" >&2
fi
exec "$@"
