# what: bonds of two veth pairs, one of them active
# target: 198.18.0.2
namespaces a b
for n in a b; do ip -n "$n" link add bond0 type bond mode active-backup miimon 100 || fail 'this kernel has no bonds (module bonding)'; done
for n in 0 1; do
  ip link add "eth$n" netns a type veth peer name "eth$n" netns b
  ip -n a link set "eth$n" master bond0
  ip -n b link set "eth$n" master bond0
  up a "eth$n"
  up b "eth$n"
done
address a bond0 198.18.0.1/24
address b bond0 198.18.0.2/24
