//! Text about replicas that differ: the classes of equal replicas and their differences.

use tilescope_report::units::{ReplicaClassId, ReplicaIpu, grouped};
use tilescope_report::{ReplicaClass, ReplicaClasses};

/// The largest number of classes that are listed individually in a sentence.
const MOST_SHOWN: usize = 4;

/// Numbers in ascending order, with consecutive ones as ranges: `0-3, 5`.
pub fn replica_numbers(replicas: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for replica in replicas {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*replica) => *last = *replica,
            _ => parts.push((*replica, *replica)),
        }
    }
    let words = parts.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Replicas of a class with their differences: `2, 3 (host 2 times slower)`. `None` if all replicas
/// are equal.
pub fn class_words(classes: &ReplicaClasses, class: ReplicaClassId) -> Option<String> {
    let of = classes.classes.get(class.index()).filter(|_| classes.differ())?;
    Some(words(of))
}

/// `IPU 1`, or `IPU 1 of replicas 2, 3` if replicas differ.
pub fn ipu_words(classes: &ReplicaClasses, at: ReplicaIpu) -> String {
    match classes.classes.get(at.class.index()).filter(|_| classes.differ()) {
        Some(class) => {
            let several = if class.replicas.len() == 1 { "" } else { "s" };
            format!("IPU {} of replica{several} {}", at.ipu, replica_numbers(&class.replicas))
        }
        None => format!("IPU {}", at.ipu),
    }
}

/// The classes of replicas and their differences, in one sentence; `None` if all are equal.
pub fn sentence(classes: &ReplicaClasses) -> Option<String> {
    if !classes.differ() {
        return None;
    }
    let all: usize = classes.classes.iter().map(|class| class.replicas.len()).sum();
    let shown: Vec<String> = classes.classes.iter().take(MOST_SHOWN).map(words).collect();
    let more = match classes.classes.len().saturating_sub(MOST_SHOWN) {
        0 => String::new(),
        rest => format!("; and {} more classes", grouped(rest as u64)),
    };
    Some(format!("{} replicas differ: {}{more}", grouped(all as u64), shown.join("; ")))
}

fn words(class: &ReplicaClass) -> String {
    format!("{} ({})", replica_numbers(&class.replicas), class.why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tilescope_report::units::IpuId;

    fn classes(members: &[(&[u32], &str)]) -> ReplicaClasses {
        let class = |(replicas, why): &(&[u32], &str)| ReplicaClass {
            replicas: replicas.to_vec(),
            why: (*why).to_owned(),
        };
        ReplicaClasses { classes: members.iter().map(class).collect(), joins: BTreeSet::new() }
    }

    #[test]
    fn consecutive_replicas_form_ranges() {
        assert_eq!(replica_numbers(&[0, 1, 2, 3, 5]), "0-3, 5");
        assert_eq!(replica_numbers(&[2, 3, 7, 8, 9]), "2, 3, 7-9");
        assert_eq!(replica_numbers(&[]), "");
    }

    #[test]
    fn sentences_name_classes_and_their_differences() {
        assert_eq!(sentence(&classes(&[(&[0, 1], "")])), None);
        let two = classes(&[(&[0, 1], "fast host"), (&[2, 3], "host 2 times slower")]);
        let said = "4 replicas differ: 0, 1 (fast host); 2, 3 (host 2 times slower)";
        assert_eq!(sentence(&two).unwrap(), said);
        assert_eq!(class_words(&two, ReplicaClassId(1)).unwrap(), "2, 3 (host 2 times slower)");
        let at = ReplicaIpu { class: ReplicaClassId(1), ipu: IpuId(0) };
        assert_eq!(ipu_words(&two, at), "IPU 0 of replicas 2, 3");
        assert_eq!(ipu_words(&classes(&[]), ReplicaIpu::default()), "IPU 0");
        let each: Vec<(&[u32], &str)> = vec![(&[0], "a"); 6];
        assert!(sentence(&classes(&each)).unwrap().ends_with("; and 2 more classes"));
    }
}
