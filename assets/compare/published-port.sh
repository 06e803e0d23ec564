# what: a published port: destination NAT to a namespace on a bridge (nft)
# target: 198.18.1.1
# needs: nft
namespaces a b host
ip -n host link add br0 type bridge
pair b eth0 host port-b
ip -n host link set port-b master br0
address host br0 198.18.0.254/24
address b eth0 198.18.0.2/24
ip -n b route add default via 198.18.0.254
pair host out0 a eth0
address host out0 198.18.1.1/24
address a eth0 198.18.1.2/24
in_namespace host sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
in_namespace host nft add table ip nat
in_namespace host nft add chain ip nat in '{ type nat hook prerouting priority -100; }'
in_namespace host nft add rule ip nat in iifname out0 meta l4proto '{ tcp, udp }' dnat to 198.18.0.2
