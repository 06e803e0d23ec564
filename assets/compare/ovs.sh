# what: Open vSwitch, kernel datapath
# target: 198.18.0.2
# needs: ovs-vswitchd ovs-vsctl ovsdb-server ovsdb-tool
namespaces a b host
kernel_datapath
open_vswitch
ovs-vsctl --no-wait add-br br0
for n in a b; do
  pair "$n" eth0 host "port-$n"
  ovs-vsctl --no-wait add-port br0 "port-$n"
done
address a eth0 198.18.0.1/24
address b eth0 198.18.0.2/24
switch_ready br0 port-a port-b
