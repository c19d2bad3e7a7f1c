#!/bin/bash
# node.sh up|down    Kubernetes of one node, on a bridge that leads nowhere else; binaries and images in $NFS_DASK_KUBERNETES
#
# API server, controller manager, scheduler, kubelet, etcd, containerd, runc and the bridge of pods are the real ones.
# There is no kube-proxy: a small DNS gives the name of a service the address of its first pod that is ready, so that
# ports of services and containers have to be the same. Pods reach each other and this host, and nothing else. Policies
# of the network are stored, and not enforced.
set -euo pipefail
home=$(realpath "${NFS_DASK_KUBERNETES:?the folder that build.sh was given}")
run=$home/run bin=$home/bin bridge=nfsdask0 net=10.244.77 gateway=10.244.77.1
api=26443 etcd=26379 peer=26380
export KUBECONFIG=$run/kubeconfig

spawn() { # NAME COMMAND...: a process that outlives this script
  local name=$1; shift
  setsid "$@" > "$run/$name.log" 2>&1 < /dev/null &
  echo $! > "$run/$name.pid"
}

end() { # NAME
  [ -f "$run/$1.pid" ] || return 0
  local pid; pid=$(cat "$run/$1.pid")
  kill "$pid" 2>/dev/null || true
  for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.2; done
  kill -9 "$pid" 2>/dev/null || true
  rm -f "$run/$1.pid"
}

until_true() { # SECONDS COMMAND...
  for _ in $(seq $(($1 * 4))); do "${@:2}" > /dev/null 2>&1 && return; sleep 0.25; done
  echo "not within $1 s: ${*:2}; see $run/*.log" >&2; return 1
}

in_containerd() { ctr -a "$run/containerd.sock" -n k8s.io "$@"; }

down() {
  kubectl delete pods --all -A --grace-period=0 --force --wait=false --request-timeout=5s > /dev/null 2>&1 || true
  for name in kubelet dns scheduler controllers apiserver; do end $name; done
  if [ -S "$run/containerd.sock" ]; then
    for task in $(in_containerd tasks ls -q 2>/dev/null); do in_containerd tasks kill -s KILL "$task" 2>/dev/null || true; done
    sleep 1
    for task in $(in_containerd containers ls -q 2>/dev/null); do in_containerd tasks rm -f "$task" > /dev/null 2>&1 || true; done
  fi
  end containerd; end etcd
  grep " $run/" /proc/mounts | cut -d' ' -f2 | sort -r | xargs -r -n1 umount 2>/dev/null || true
  for space in $(ip netns list | awk '/^cni-/{print $1}'); do
    ip -n "$space" -4 addr 2>/dev/null | grep -q "inet $net\." && ip netns del "$space" || true
  done
  ip link del $bridge 2>/dev/null || true
  rm -rf "$run"
}

settings() {
  local token; token=$(openssl rand -hex 16)
  echo "$token,admin,admin,system:masters" > "$run/tokens.csv"
  openssl genrsa -out "$run/accounts.key" 2048 2>/dev/null
  cat > "$KUBECONFIG" <<EOF
apiVersion: v1
kind: Config
clusters: [{name: local, cluster: {server: "https://127.0.0.1:$api", certificate-authority: $run/certs/apiserver.crt}}]
users: [{name: admin, user: {token: $token}}]
contexts: [{name: local, context: {cluster: local, user: admin, namespace: default}}]
current-context: local
EOF
  cat > "$run/containerd.toml" <<EOF
version = 2
root = "$run/containerd"
state = "$run/containerd-state"
[grpc]
  address = "$run/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:test"
  stream_server_address = "127.0.0.1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$run/cni"
EOF
  cat > "$run/cni/pods.conflist" <<EOF
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "$bridge", "isGateway": false,
 "ipMasq": false, "hairpinMode": true, "ipam": {"type": "host-local", "dataDir": "$run/addresses",
 "ranges": [[{"subnet": "$net.0/24", "gateway": "$gateway"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
EOF
  cat > "$run/kubelet.yaml" <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $gateway
port: 26250
readOnlyPort: 0
healthzBindAddress: 127.0.0.1
healthzPort: 26248
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
enforceNodeAllocatable: []
failSwapOn: false
oomScoreAdj: 0
makeIPTablesUtilChains: false
clusterDNS: ["$gateway"]
clusterDomain: cluster.local
evictionHard: {memory.available: "100Mi"}
volumePluginDir: $run/plugins
EOF
  printf 'nameserver %s\nsearch svc.cluster.local\noptions ndots:5\n' $gateway > "$run/resolv.conf"
}

dns() { # names of services, once a second
  : > "$run/services"
  dnsmasq --keep-in-foreground --user=root --conf-file=/dev/null --pid-file= --no-resolv --no-hosts --listen-address=$gateway \
    --bind-interfaces --addn-hosts="$run/services" --local=/cluster.local/ --local-ttl=1 &
  local server=$!
  trap 'kill $server; exit 0' TERM INT
  while kill -0 $server 2>/dev/null; do
    kubectl get endpoints -A -o json 2>/dev/null > "$run/endpoints" || true
    jq -r '.items[] | select(.subsets) | .metadata as $of | .subsets[] | (.addresses // [])[0] | select(.)
      | "\(.ip) \($of.name).\($of.namespace).svc.cluster.local"' < "$run/endpoints" > "$run/found" 2>/dev/null || true
    if ! cmp -s "$run/found" "$run/services"; then cp "$run/found" "$run/services"; kill -HUP $server; fi
    sleep 1
  done
}

up() {
  [ ! -e "$run" ] || down
  mkdir -p "$run/cni" "$run/certs"; chmod 700 "$run"
  ip link add $bridge type bridge; ip addr add $gateway/24 dev $bridge; ip link set $bridge up
  settings
  spawn etcd etcd --data-dir "$run/etcd" --listen-client-urls http://127.0.0.1:$etcd \
    --advertise-client-urls http://127.0.0.1:$etcd --listen-peer-urls http://127.0.0.1:$peer \
    --initial-advertise-peer-urls http://127.0.0.1:$peer --initial-cluster default=http://127.0.0.1:$peer
  spawn containerd containerd -c "$run/containerd.toml"
  spawn apiserver "$bin/kube-apiserver" --etcd-servers=http://127.0.0.1:$etcd --bind-address=127.0.0.1 \
    --advertise-address=127.0.0.1 --secure-port=$api --insecure-port=0 --cert-dir="$run/certs" \
    --service-account-key-file="$run/accounts.key" --service-account-signing-key-file="$run/accounts.key" \
    --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range=10.0.0.0/24 \
    --token-auth-file="$run/tokens.csv" --authorization-mode=RBAC --allow-privileged=true \
    --endpoint-reconciler-type=none --kubelet-preferred-address-types=InternalIP
  until_true 60 kubectl get --raw /readyz
  spawn controllers "$bin/kube-controller-manager" --kubeconfig="$KUBECONFIG" --bind-address=127.0.0.1 \
    --secure-port=26257 --port=0 --cert-dir="$run/controllers" --leader-elect=false \
    --service-account-private-key-file="$run/accounts.key" --root-ca-file="$run/certs/apiserver.crt"
  spawn scheduler "$bin/kube-scheduler" --kubeconfig="$KUBECONFIG" --bind-address=127.0.0.1 --secure-port=26259 \
    --port=0 --cert-dir="$run/scheduler" --leader-elect=false
  spawn dns bash "$0" dns
  until_true 30 in_containerd version
  for image in "$home"/images/*.tar; do in_containerd images import "$image" > /dev/null; done
  spawn kubelet "$bin/kubelet" --config="$run/kubelet.yaml" --kubeconfig="$KUBECONFIG" --root-dir="$run/kubelet" \
    --cert-dir="$run/kubelet-certs" --container-runtime=remote --hostname-override=node --node-ip=$gateway \
    --container-runtime-endpoint="unix://$run/containerd.sock" --pod-infra-container-image=localhost/pause:test \
    --runtime-cgroups=/
  until_true 60 kubectl get node node
  kubectl wait --for=condition=Ready node/node --timeout=60s
  until_true 30 kubectl get serviceaccount default
}

case ${1:-} in
  up | down) "$1" ;;
  dns) dns ;;
  *) echo "usage: node.sh up|down" >&2; exit 2 ;;
esac
