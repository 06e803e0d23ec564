# what: a netkit pair between two namespaces, L3 (Linux 6.7)
# target: 198.18.0.2
namespaces a b
# Without options, which an older ip does not know: the kernel calls the other end nk0.
ip -n a link add name eth0 type netkit || fail 'this kernel has no netkit (Linux 6.7)'
ip -n a link set nk0 netns b name eth0
address a eth0 198.18.0.1/32
address b eth0 198.18.0.2/32
ip -n a route add 198.18.0.2 dev eth0
ip -n b route add 198.18.0.1 dev eth0
