# what: two hosts with a bridge each, routes between them (flannel host-gw)
# target: 198.18.2.2
namespaces a b host1 host2
pair host1 eth0 host2 eth0
address host1 eth0 198.18.0.1/24
address host2 eth0 198.18.0.2/24
# host NS END NUMBER
host() {
  ip -n "$1" link add cni0 type bridge
  pair "$2" eth0 "$1" "port-$2"
  ip -n "$1" link set "port-$2" master cni0
  address "$1" cni0 "198.18.$3.1/24"
  address "$2" eth0 "198.18.$3.2/24"
  ip -n "$2" route add default via "198.18.$3.1"
  in_namespace "$1" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
}
host host1 a 1
host host2 b 2
ip -n host1 route add 198.18.2.0/24 via 198.18.0.2
ip -n host2 route add 198.18.1.0/24 via 198.18.0.1
