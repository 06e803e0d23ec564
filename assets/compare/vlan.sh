# what: VLAN 5 on a veth pair
# target: 198.18.1.2
namespaces a b
pair a eth0 b eth0
ip -n a link add name eth0.5 link eth0 type vlan id 5
ip -n b link add name eth0.5 link eth0 type vlan id 5
address a eth0.5 198.18.1.1/24
address b eth0.5 198.18.1.2/24
