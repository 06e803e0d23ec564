# what: the machine's own address on another link: still loopback
# target: 198.18.0.1
namespaces a
pair a eth0 a eth1
address a eth0 198.18.0.1/24
