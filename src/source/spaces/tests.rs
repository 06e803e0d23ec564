//! On the real kernel: namespaces that come, go and are kept by a mount. Without the right to make them there is nothing
//! to look at, and the live tests say so.
