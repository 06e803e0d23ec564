# what: two ipvlans of one link, L3S: the rules of the host see what arrives
# target: 198.18.0.2
namespaces a b host
pair host parent host other
ip -n host link add name i1 link parent netns a type ipvlan mode l3s
ip -n host link add name i2 link parent netns b type ipvlan mode l3s
address a i1 198.18.0.1/24
address b i2 198.18.0.2/24
