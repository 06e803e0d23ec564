# what: a veth pair, an XDP program at each end that lets everything pass
# target: 198.18.0.2
# needs: base64 gzip
namespaces a b
pair a eth0 b eth0
address a eth0 198.18.0.1/24
address b eth0 198.18.0.2/24
# Two instructions: return XDP_PASS. SEC("xdp") int pass(void *context) { return 2; } by clang -O2 -target bpfel, gzip, base64.
program='H4sIAAAAAAACA6t39XFjYmRkgAFGhu8MCB4CPEBiO0BJdqDK7UAWExBPhcq5B/gw4APsQCzEwAznCyDRggwscHEYi4mZQa8ktaKEoSCxuJihIqWAIT6HQS8npyw3PjElpag4M50hJzM5Na84lUGvuKSoJDEJSFfmgmiqAE0gZsYivghKW6KJM2LhgzAbmrgDDvtY0Pg8BPQLoIlzoPEVofrR/RCAwz509wuD9Pr8zwdSDcjiC2DxQ0C/IRY1IBABpT3Qwgnmfglo9AEA5KXxNKACAAA='
printf %s "$program" | base64 -d | gzip -d >/run/pass.o
for n in a b; do ip -n "$n" link set eth0 xdpdrv object /run/pass.o section xdp || fail 'an XDP program cannot be attached here'; done
