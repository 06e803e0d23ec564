# what: two veth pairs on a Linux bridge
# target: 198.18.0.2
namespaces a b host
ip -n host link add br0 type bridge
up host br0
for n in a b; do
  pair "$n" eth0 host "port-$n"
  ip -n host link set "port-$n" master br0
done
address a eth0 198.18.0.1/24
address b eth0 198.18.0.2/24
