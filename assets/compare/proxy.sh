# what: a published port through a proxy process (TCP)
# target: 127.0.0.1
# loads: tcp tcp4 rr
namespaces a b
ip -n a link add br0 type bridge
pair b eth0 a port-b
ip -n a link set port-b master br0
address a br0 198.18.0.254/24
address b eth0 198.18.0.2/24
for port in 5201 5202; do
  in_namespace a "$VNETTOP" network-child relay --listen "127.0.0.1:$port" --to "198.18.0.2:$port" --ready "/run/ready-$port" &
  wired "/run/ready-$port"
done
