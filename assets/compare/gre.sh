# what: gre over a veth pair
# target: 198.18.1.2
# module: ip_gre
namespaces a b
pair a eth0 b eth0
address a eth0 198.18.0.1/24
address b eth0 198.18.0.2/24
ip -n a link add tunnel0 type gre local 198.18.0.1 remote 198.18.0.2
ip -n b link add tunnel0 type gre local 198.18.0.2 remote 198.18.0.1
address a tunnel0 198.18.1.1/24
address b tunnel0 198.18.1.2/24
