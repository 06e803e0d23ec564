# what: two hosts without bridges, a route for each end and proxy ARP (calico)
# target: 198.18.2.2
namespaces a b host1 host2
pair host1 eth0 host2 eth0
address host1 eth0 198.18.0.1/24
address host2 eth0 198.18.0.2/24
# host NS END ADDRESS
host() {
  pair "$2" eth0 "$1" "cali-$2"
  address "$2" eth0 "$3/32"
  ip -n "$2" route add 169.254.1.1 dev eth0 scope link
  ip -n "$2" route add default via 169.254.1.1 dev eth0
  ip -n "$1" route add "$3" dev "cali-$2" scope link
  in_namespace "$1" sh -c "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv4/conf/cali-$2/proxy_arp; echo 0 >/proc/sys/net/ipv4/neigh/cali-$2/proxy_delay"
}
host host1 a 198.18.1.2
host host2 b 198.18.2.2
# Proxy ARP answers for what the host has a route to.
ip -n host1 route add default via 198.18.0.2
ip -n host2 route add default via 198.18.0.1
