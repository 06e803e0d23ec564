# what: two veth pairs, tc hands each packet from one to the other (cls_bpf, mirred)
# target: 198.18.0.2
# needs: tc
namespaces a b host
for n in a b; do pair "$n" eth0 host "port-$n"; done
# redirect LINK LINK: whatever comes in by the first leaves by the second. One instruction of BPF: all of it.
redirect() {
  in_namespace host tc qdisc add dev "$1" clsact
  in_namespace host tc filter add dev "$1" ingress protocol all bpf bytecode '1,6 0 0 4294967295' flowid 1:1 action mirred egress redirect dev "$2" ||
    fail 'tc cannot redirect here (cls_bpf, act_mirred)'
}
redirect port-a port-b
redirect port-b port-a
address a eth0 198.18.0.1/24
address b eth0 198.18.0.2/24
