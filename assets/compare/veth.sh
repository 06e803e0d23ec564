# what: a veth pair between two namespaces
# target: 198.18.0.2
namespaces a b
pair a eth0 b eth0
address a eth0 198.18.0.1/24
address b eth0 198.18.0.2/24
