# what: vxlan over a veth pair
# target: 198.18.1.2
namespaces a b
pair a eth0 b eth0
address a eth0 198.18.0.1/24
address b eth0 198.18.0.2/24
ip -n a link add vxlan0 type vxlan id 7 dstport 4789 dev eth0 local 198.18.0.1 remote 198.18.0.2
ip -n b link add vxlan0 type vxlan id 7 dstport 4789 dev eth0 local 198.18.0.2 remote 198.18.0.1
address a vxlan0 198.18.1.1/24
address b vxlan0 198.18.1.2/24
