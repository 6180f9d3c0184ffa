//! The help pages on how IPU programs work, found by what names a mechanism.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use tilescope_analysis::insights::InsightFinding;

macro_rules! page {
    ($name:literal) => {
        MechanismPage(include_str!(concat!("../../../../assets/help/mechanisms/", $name, ".md")))
    };
}

/// A page of help on a mechanism: pipelines, collectives, syncs, streams and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MechanismPage(&'static str);

const PIPELINING: MechanismPage = page!("pipelining");
const REPLICATION: MechanismPage = page!("replication");
const SYNC: MechanismPage = page!("sync");
const BATCHES: MechanismPage = page!("batches");
const PREFETCH: MechanismPage = page!("prefetch");
const REARRANGEMENT: MechanismPage = page!("rearrangement");
const RECOMPUTATION: MechanismPage = page!("recomputation");
const OFF_LOADING: MechanismPage = page!("off-loading");

/// Every page, in the order in which help lists them.
pub(crate) const MECHANISMS: [MechanismPage; 17] = [
    PIPELINING,
    REPLICATION,
    SYNC,
    BATCHES,
    PREFETCH,
    page!("io-tiles"),
    REARRANGEMENT,
    page!("memory-proportion"),
    RECOMPUTATION,
    OFF_LOADING,
    page!("replicated-tensor-sharding"),
    page!("phases"),
    page!("sharding"),
    page!("domain-sharding"),
    page!("tensor-parallelism"),
    page!("outlining"),
    page!("compilation"),
];

/// Rules of insights that name a mechanism without a key of a spec.
const OF_RULES: [(&str, MechanismPage); 9] = [
    ("host_wait", PREFETCH),
    ("host_call", BATCHES),
    ("rearrangement", REARRANGEMENT),
    ("strided_copies", REARRANGEMENT),
    ("recomputed_passes", RECOMPUTATION),
    ("remote_buffers", OFF_LOADING),
    ("collectives", REPLICATION),
    ("stage_balance", PIPELINING),
    ("waiting", SYNC),
];

/// Blocks of the summary, with the mechanisms that their figures come from.
const OF_BLOCKS: [(&str, &[MechanismPage]); 3] = [
    ("Batching and throughput", &[BATCHES, PIPELINING]),
    ("Host", &[PREFETCH]),
    ("Replicas and sync groups", &[REPLICATION, SYNC]),
];

/// A key of a spec in a table of a page, and the value to which the page applies, if not to all.
struct ExplainedKey {
    page: MechanismPage,
    key: &'static str,
    only: Option<&'static str>,
}

/// The keys that pages explain, in the order in which help lists the pages. Views ask for them on
/// each frame.
static EXPLAINED: LazyLock<Vec<ExplainedKey>> = LazyLock::new(|| {
    let mut found = Vec::new();
    for page in MECHANISMS {
        for row in page.0.lines().filter(|line| line.starts_with('|')) {
            for code in row.split('`').skip(1).step_by(2) {
                let (key, only) = match code.split_once(" = ") {
                    Some((key, only)) => (key, Some(only)),
                    None => (code, None),
                };
                found.push(ExplainedKey { page, key, only });
            }
        }
    }
    found
});

impl MechanismPage {
    /// Its text, as Markdown.
    pub(crate) fn text(self) -> &'static str {
        self.0
    }

    /// The text of its heading.
    pub(crate) fn title(self) -> &'static str {
        self.0.lines().next().unwrap_or_default().trim_start_matches("# ")
    }

    /// The first page that explains a key of a spec with this value, as TOML.
    pub(crate) fn of_key(key: &str, value: &str) -> Option<Self> {
        let found = EXPLAINED
            .iter()
            .find(|known| known.key == key && known.only.is_none_or(|only| only == value));
        found.map(|known| known.page)
    }

    /// The pages that explain the keys of a spec, each once, in the order in which help lists them.
    pub(crate) fn of_spec(values: &BTreeMap<String, String>) -> Vec<Self> {
        let mut found = Vec::new();
        for (key, value) in values {
            found.extend(Self::of_key(key, value));
        }
        MECHANISMS.into_iter().filter(|page| found.contains(page)).collect()
    }

    /// The page of a finding of insights: of its rule, or of the first key that it proposes.
    pub(crate) fn of_finding(finding: &InsightFinding) -> Option<Self> {
        let of_rule = OF_RULES.iter().find(|(name, _)| *name == finding.rule);
        if let Some((_, page)) = of_rule {
            return Some(*page);
        }
        let mut changes = finding.proposal.as_ref()?.changes.iter();
        changes.find_map(|(key, value)| Self::of_key(key, &value.to_string()))
    }

    /// The pages of a block of the summary.
    pub(crate) fn of_block(title: &str) -> &'static [Self] {
        let found = OF_BLOCKS.iter().find(|(name, _)| *name == title);
        found.map_or(&[], |(_, pages)| *pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_analysis::insights::RULES;

    #[test]
    fn pages_are_found_by_the_keys_that_they_explain() {
        let title = |key, value| MechanismPage::of_key(key, value).map(MechanismPage::title);
        assert_eq!(title("options.recomputation", "\"auto\""), Some("Recomputation"));
        assert_eq!(title("model.batch_size", "4"), Some("Batches"));
        assert_eq!(title("options.execution", "\"phased\""), Some("Phased execution"));
        let key = "options.location.weights.on_chip";
        assert_eq!(title(key, "false"), Some("Offloading to streaming memory"));
        assert_eq!(title(key, "true"), None);
        assert_eq!(title("options.no_such_key", "1"), None);
        let spec = ["options.recomputation", "options.stages", "options.pipeline_schedule"];
        let spec = spec.map(|key| (key.to_owned(), "1".to_owned()));
        assert_eq!(MechanismPage::of_spec(&spec.into()), [PIPELINING, RECOMPUTATION]);
    }

    #[test]
    fn rules_with_a_page_exist() {
        for (name, _) in OF_RULES {
            assert!(RULES.iter().any(|rule| rule.name == name), "{name}");
        }
    }

    #[test]
    fn names_of_other_tools_are_on_a_page() {
        for name in ["DstStridedCopy", "StreamCopyMidRemoteBuffer", "RemoteBuffer"] {
            assert!(MECHANISMS.iter().any(|page| page.text().contains(name)), "{name}");
        }
    }
}
