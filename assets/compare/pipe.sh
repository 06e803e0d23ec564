# what: pipes, no network: for scale
# through: pipe
# loads: tcp rr
namespaces a
