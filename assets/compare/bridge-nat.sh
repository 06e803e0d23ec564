# what: a bridge, and masquerading on the way out (nft)
# target: 198.18.1.2
# needs: nft
namespaces a b host
ip -n host link add br0 type bridge
pair a eth0 host port-a
ip -n host link set port-a master br0
address host br0 198.18.0.254/24
address a eth0 198.18.0.1/24
ip -n a route add default via 198.18.0.254
pair host out0 b eth0
address host out0 198.18.1.1/24
address b eth0 198.18.1.2/24
in_namespace host sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
in_namespace host nft add table ip nat
in_namespace host nft add chain ip nat out '{ type nat hook postrouting priority 100; }'
in_namespace host nft add rule ip nat out oifname out0 masquerade
