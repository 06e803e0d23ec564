# what: a pair of unix sockets, no network: for scale
# through: socket
# loads: tcp rr
namespaces a
