# what: a netkit pair between two namespaces, L3 (Linux 6.7)
# target: 198.18.0.2
namespaces a b
# Without options, which an older ip does not know: the kernel names the other end.
ip -n a link add nk0 type netkit || fail 'this kernel has no netkit (Linux 6.7)'
other=$(ip -n a -o link show type netkit | grep -o 'nk[0-9]*' | grep -v -m 1 '^nk0$') || fail 'the other end of nk0 has no name'
ip -n a link set "$other" netns b name nk1
address a nk0 198.18.0.1/32
address b nk1 198.18.0.2/32
ip -n a route add 198.18.0.2 dev nk0
ip -n b route add 198.18.0.1 dev nk1
