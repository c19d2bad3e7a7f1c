#!/bin/bash
# image.sh FOLDER    the image of deploy/Dockerfile, where node.sh loads it from; FOLDER is that of build.sh
set -euo pipefail
out=$(realpath "$1")
root=$(cd "$(dirname "$0")/../../.." && pwd)
buildah() { command buildah --storage-driver overlay --root "$out/storage" --runroot "$out/storage-run" "$@"; }
name=docker.io/library/nfs-dask:0.1.0
# The certificates are for machines whose way to PyPI has an authority of its own.
buildah bud -q --layers --isolation chroot --pull-never --volume /etc/ssl/certs:/etc/ssl/certs:ro \
  -f "$root/deploy/Dockerfile" -t $name "$root" > /dev/null
rm -f "$out/images/nfs-dask.tar"
buildah push -q $name "docker-archive:$out/images/nfs-dask.tar:$name"
