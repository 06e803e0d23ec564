//! The shapes of virtual networks, built from `ip` alone with names of the test's choice: two hosts with a wire between,
//! a pod or a container on each.
