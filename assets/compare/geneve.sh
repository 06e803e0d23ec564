# what: geneve over a veth pair
# target: 198.18.1.2
namespaces a b
pair a eth0 b eth0
address a eth0 198.18.0.1/24
address b eth0 198.18.0.2/24
ip -n a link add geneve0 type geneve id 7 remote 198.18.0.2
ip -n b link add geneve0 type geneve id 7 remote 198.18.0.1
address a geneve0 198.18.1.1/24
address b geneve0 198.18.1.2/24
