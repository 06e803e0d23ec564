# what: loopback, 127.0.0.1
# target: 127.0.0.1
namespaces a
