# Namespaces a (the sender's) and b (the receiver's), and what lies between them. Each script can be run by hand as root.
namespaces() { for n; do ip netns add "$n"; ip -n "$n" link set lo up; done; }
# pair NS LINK NS LINK: a veth pair, both ends up.
pair() { ip link add "$2" netns "$1" type veth peer name "$4" netns "$3"; up "$1" "$2"; up "$3" "$4"; }
up() { ip -n "$1" link set "$2" up; }
# address NS LINK ADDRESS/LENGTH
address() { ip -n "$1" address add "$3" dev "$2"; up "$1" "$2"; }
in_namespace() { ip netns exec "$@"; }
# Open vSwitch in namespace host, with its files where nobody else sees them.
open_vswitch() {
  # By hand: no switch that runs already is touched.
  [ -S /run/openvswitch/db.sock ] && fail 'Open vSwitch runs here: start this script in unshare -m, with mount -t tmpfs none /run'
  export OVS_RUNDIR=/run/openvswitch OVS_DBDIR=/run/openvswitch OVS_LOGDIR=/run/openvswitch
  mkdir -p "$OVS_RUNDIR"
  ovsdb-tool create "$OVS_DBDIR/conf.db" /usr/share/openvswitch/vswitch.ovsschema
  in_namespace host ovsdb-server --remote="punix:$OVS_RUNDIR/db.sock" --log-file=/dev/null "$OVS_DBDIR/conf.db" 2>/dev/null &
  until [ -S "$OVS_RUNDIR/db.sock" ]; do alive $! ovsdb-server; sleep 0.02; done
  ovs-vsctl --no-wait init
  in_namespace host ovs-vswitchd --log-file=/dev/null 2>/dev/null &
}
# The kernel's datapath: a request for it loads its module.
kernel_datapath() {
  case $(in_namespace host ovs-dpctl dump-dps 2>&1) in
    *'does not exist'*) fail 'this kernel has no datapath of Open vSwitch (module openvswitch)' ;;
  esac
}
# switch_ready BRIDGE PORT…: waits until the switch has taken them, or says why it has not.
switch_ready() {
  ovs-vsctl --timeout=10 wait-until Bridge "$1" datapath_id!='[]' || fail "ovs-vswitchd makes no $1"
  for p in "$@"; do
    ovs-vsctl --timeout=10 wait-until Interface "$p" ofport!='[]'
    e=$(ovs-vsctl get Interface "$p" error)
    [ "$e" = '[]' ] || fail "$e"
  done
}
fail() { echo "$*" >&2; exit 1; }
# alive PID NAME: fails when that process is gone.
alive() { kill -0 "$1" 2>/dev/null || fail "$2 does not run"; }
# wired FILE: waits for the process in the background that makes this file when it is ready.
wired() { until [ -e "$1" ]; do alive $! "vnettop's own process"; sleep 0.02; done; }
