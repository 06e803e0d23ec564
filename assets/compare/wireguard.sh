# what: wireguard over a veth pair
# target: 198.18.1.2
# needs: wg
namespaces a b
pair a eth0 b eth0
address a eth0 198.18.0.1/24
address b eth0 198.18.0.2/24
umask 077
for n in a b; do
  ip -n "$n" link add wg0 type wireguard
  wg genkey >"/run/key-$n"
done
# peer NS PEER-NS ENDPOINT INNER-ADDRESS
peer() {
  in_namespace "$1" wg set wg0 listen-port 51820 private-key "/run/key-$1" \
    peer "$(wg pubkey <"/run/key-$2")" allowed-ips "$4" endpoint "$3:51820"
}
peer a b 198.18.0.2 198.18.1.2/32
peer b a 198.18.0.1 198.18.1.1/32
address a wg0 198.18.1.1/24
address b wg0 198.18.1.2/24
