# what: a macvtap, as of a virtual machine, to a macvlan of the same link; a process stands for the machine
# target: 198.18.0.2
# needs: /dev/net/tun
namespaces a b host
pair host parent host other
ip -n host link add name tap0 link parent type macvtap mode bridge
ip -n host link add name m2 link parent netns b type macvlan mode bridge
up host tap0
number=$(in_namespace host sh -c 'cat /sys/class/net/tap0/tap*/dev')
mknod /run/tap0 c "${number%:*}" "${number#*:}"
mac=$(in_namespace host cat /sys/class/net/tap0/address)
ip -n a tuntap add dev eth0 mode tap
ip -n a link set eth0 address "$mac"
"$VNETTOP" network-child wire --from a:eth0 --to /run/tap0 --mode tap --ready /run/ready &
wired /run/ready
address a eth0 198.18.0.1/24
address b m2 198.18.0.2/24
