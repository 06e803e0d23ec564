# what: two macvlans of one link, bridge mode
# target: 198.18.0.2
namespaces a b host
pair host parent host other
ip -n host link add name m1 link parent netns a type macvlan mode bridge
ip -n host link add name m2 link parent netns b type macvlan mode bridge
address a m1 198.18.0.1/24
address b m2 198.18.0.2/24
