# what: a tap on a bridge, as of a virtual machine; a process stands for the machine
# target: 198.18.0.2
# needs: /dev/net/tun
namespaces a b host
ip -n host link add br0 type bridge
up host br0
pair b eth0 host port-b
ip -n host link set port-b master br0
ip -n host tuntap add dev tap0 mode tap
ip -n host link set tap0 master br0
ip -n a tuntap add dev eth0 mode tap
"$VNETTOP" network-child wire --from a:eth0 --to host:tap0 --mode tap --ready /run/ready &
wired /run/ready
up host tap0
address a eth0 198.18.0.1/24
address b eth0 198.18.0.2/24
