# what: two veth pairs, tc hands each packet from one to the other (mirred)
# target: 198.18.0.2
# needs: tc
namespaces a b host
for n in a b; do pair "$n" eth0 host "port-$n"; done
# filter LINK LINK CLASSIFIER…: whatever comes in by the first leaves by the second.
filter() {
  i=$1 o=$2; shift 2
  in_namespace host tc filter add dev "$i" ingress protocol all "$@" action mirred egress redirect dev "$o"
}
# Every packet: by matchall, on a kernel without it by one instruction of BPF.
redirect() {
  in_namespace host tc qdisc add dev "$1" clsact
  filter "$1" "$2" matchall 2>/dev/null || filter "$1" "$2" bpf bytecode '1,6 0 0 4294967295' flowid 1:1 ||
    fail 'tc cannot redirect here (cls_matchall or cls_bpf, act_mirred)'
}
redirect port-a port-b
redirect port-b port-a
address a eth0 198.18.0.1/24
address b eth0 198.18.0.2/24
