#!/bin/bash
# Two nodes on one machine: makes two network namespaces with their own addresses and host names, runs one agent in
# each, and takes everything down again. Needs root (or sudo) and iproute2.
#
#   examples/two_nodes.sh                       trains examples/digits with 4 + 4 workers
#   examples/two_nodes.sh OPTIONS... PROGRAM    runs `ddlaunch --nnodes=2 --rdzv_endpoint=h0:29400 OPTIONS... PROGRAM`
#
# h1's output is shown with "h1| " in front. The exit status is h0's agent's.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
ddlaunch=${DDLAUNCH_BIN:-$here/../build/ddlaunch}
digits=$here/../build/examples/digits/digits

if [ "$EUID" -ne 0 ]; then
    exec sudo --preserve-env=DDLAUNCH_BIN "$0" "$@"
fi
if [ $# -eq 0 ]; then
    set -- --nproc_per_node=4 "$digits" --data "$here/digits/digits.csv"
fi

names=(h0 h1)
spaces=("ddl$$-h0" "ddl$$-h1")
agents=()
interrupted=false

# shellcheck disable=SC2317  # called by the trap
down() {
    local i
    for i in 0 1; do
        ip netns del "${spaces[i]}" 2>/dev/null
        rm -rf "/etc/netns/${spaces[i]}"
    done
    rmdir /etc/netns 2>/dev/null
}
trap down EXIT
trap 'forward INT' INT
trap 'forward TERM' TERM

# The agents are in sessions of their own: each signal reaches each of them once.
# shellcheck disable=SC2317  # called by the traps
forward() {
    interrupted=true
    local pid
    for pid in "${agents[@]}"; do kill "-$1" "$pid" 2>/dev/null; done
}

# await PID: its exit status, also when a signal was forwarded meanwhile.
await() {
    local status
    while :; do
        interrupted=false
        wait "$1"
        status=$?
        $interrupted || return $status
    done
}

up() {
    local i
    for i in 0 1; do
        ip netns add "${spaces[i]}" || return
        # `ip netns exec` shows this file as /etc/hosts
        mkdir -p "/etc/netns/${spaces[i]}"
        printf '127.0.0.1 localhost\n10.99.0.1 h0\n10.99.0.2 h1\n' >"/etc/netns/${spaces[i]}/hosts"
    done
    ip -n "${spaces[0]}" link add eth0 type veth peer name eth0 netns "${spaces[1]}" || return
    for i in 0 1; do
        ip -n "${spaces[i]}" address add "10.99.0.$((i + 1))/24" dev eth0 &&
            ip -n "${spaces[i]}" link set eth0 up && ip -n "${spaces[i]}" link set lo up || return
    done
}

# on I COMMAND...: runs a command as host I, under its own host name.
on() {
    local i=$1
    shift
    # shellcheck disable=SC2016  # expanded by the inner shell
    exec setsid ip netns exec "${spaces[i]}" unshare --uts sh -c 'hostname "$0" && exec "$@"' "${names[i]}" "$@"
}

up || { echo "two_nodes.sh: cannot make network namespaces: is this container allowed to (CAP_SYS_ADMIN)?" >&2; exit 1; }
echo "each host runs: ddlaunch --nnodes=2 --rdzv_endpoint=h0:29400 $*"
exec {prefixed}> >(exec sed -u 's/^/h1| /')
prefixer=$!
on 1 "$ddlaunch" --nnodes=2 --rdzv_endpoint=h0:29400 "$@" >&"$prefixed" 2>&1 {prefixed}>&- &
agents+=($!)
on 0 "$ddlaunch" --nnodes=2 --rdzv_endpoint=h0:29400 "$@" &
agents+=($!)
await "${agents[1]}"
status=$?
await "${agents[0]}"
exec {prefixed}>&-
await "$prefixer"
exit $status
