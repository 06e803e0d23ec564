# what: two tuns, a process copies the packets from one to the other
# target: 198.18.0.2
# needs: /dev/net/tun
namespaces a b
for n in a b; do ip -n "$n" tuntap add dev tun0 mode tun; done
"$VNETTOP" network-child wire --from a:tun0 --to b:tun0 --mode tun --ready /run/ready &
wired /run/ready
address a tun0 198.18.0.1/24
address b tun0 198.18.0.2/24
