//! The origin of a slice of a report.

use serde::{Deserialize, Serialize};

/// The origin of a report that is a slice of another one: `meta.slice`, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceOrigin {
    /// Path of the report that it was cut from.
    pub report: String,
    /// The requested cycles, half-open, as that report counts them.
    pub cycles: (u64, u64),
    /// The cycle of that report that is cycle 0 here.
    pub first_cycle: u64,
    /// The requested IPUs; `None` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipus: Option<Vec<u32>>,
}

impl SliceOrigin {
    /// A sentence for users.
    pub(crate) fn sentence(&self) -> String {
        let Self { report, cycles: (start, end), first_cycle, ipus } = self;
        let on = ipus.as_ref().map_or_else(String::new, |ipus| {
            let list: Vec<String> = ipus.iter().map(u32::to_string).collect();
            format!(" of IPU {}", list.join(", "))
        });
        format!(
            "this is a slice of {report}: steps{on} that share a cycle with {start}..{end} there; \
             cycle 0 here is cycle {first_cycle} there"
        )
    }
}
