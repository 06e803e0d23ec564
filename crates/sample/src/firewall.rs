//! Rules of the firewall that packets of the watched paths meet.

use super::LinkKey;
use serde::{Deserialize, Serialize};

/// The rules of nftables that packets of the watched paths may meet in one network namespace: those of the chains whose
/// hooks they pass there, and of the chains that these lead to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallRules {
    /// The first link of a path there.
    pub link: LinkKey,
    /// How many; `None` where they cannot be read.
    pub rules: Option<u32>,
    /// Why that is not known, or why there may be more; `None` where these are all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
}
