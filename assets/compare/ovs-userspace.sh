# what: Open vSwitch, userspace datapath
# target: 198.18.0.2
# needs: ovs-vswitchd ovs-vsctl ovsdb-server ovsdb-tool ethtool
namespaces a b host
open_vswitch
ovs-vsctl --no-wait add-br br0 -- set bridge br0 datapath_type=netdev
for n in a b; do
  pair "$n" eth0 host "port-$n"
  ovs-vsctl --no-wait add-port br0 "port-$n"
done
address a eth0 198.18.0.1/24
address b eth0 198.18.0.2/24
# The switch hands on what it gets, and nobody would fill in the checksums that were left to a card.
for n in a b; do in_namespace "$n" ethtool -K eth0 tx off; done
switch_ready br0 port-a port-b
