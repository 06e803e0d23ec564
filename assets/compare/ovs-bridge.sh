# what: a Linux bridge at each end of an Open vSwitch bridge, kernel datapath
# target: 198.18.0.2
# needs: ovs-vswitchd ovs-vsctl ovsdb-server ovsdb-tool
namespaces a b host
kernel_datapath
open_vswitch
ovs-vsctl --no-wait add-br br0
for n in a b; do
  ip -n host link add "bridge-$n" type bridge
  up host "bridge-$n"
  pair "$n" eth0 host "port-$n"
  ip -n host link set "port-$n" master "bridge-$n"
  pair host "up-$n" host "ovs-$n"
  ip -n host link set "up-$n" master "bridge-$n"
  ovs-vsctl --no-wait add-port br0 "ovs-$n"
done
address a eth0 198.18.0.1/24
address b eth0 198.18.0.2/24
switch_ready br0 ovs-a ovs-b
