//! Machines by the names under which they are sold: number and type of IPUs, and topology of their
//! links.

use super::{BOW, C600, Chip, MK1, MK2};

/// Topology of the links between the IPUs of a system, which determines the route of collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpuLinkTopology {
    /// Ladder of pairs with open ends.
    Mesh,
    /// Ladder whose ends are joined: a two-dimensional torus over machines.
    Torus,
    /// Ladder whose ends are joined crosswise (servers of C2 cards).
    BarleyTwist,
}

/// System that a spec can name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SystemDef {
    /// Name of the system in a spec.
    pub name: &'static str,
    pub chip: &'static Chip,
    pub ipus: u32,
    /// Topology if a program fills the link domain.
    pub topology: IpuLinkTopology,
    /// IPUs that IPU-Links connect. Larger systems use GW-Links beyond this number.
    pub link_domain: u32,
}

impl SystemDef {
    /// Returns the topology of a program on `ipus` IPUs. The links that join the ends of a ladder
    /// are at the ends of a rack or server, so a program that does not fill it has a ladder with
    /// open ends.
    pub(crate) fn topology_of(&self, ipus: u32) -> IpuLinkTopology {
        let fills = ipus.is_multiple_of(self.link_domain.min(self.ipus));
        if fills { self.topology } else { IpuLinkTopology::Mesh }
    }
}

/// IPUs of one IPU-Link domain: a rack (Graphcore, IPU-POD64 data sheet: 2-D torus of 64 IPUs).
const RACK_IPUS: u32 = 64;

/// IPUs of a server of C2 cards: eight cards of two (Dell DSS8440 with GC2, Citadel's report).
const C2_SERVER_IPUS: u32 = 16;

const fn system(name: &'static str, chip: &'static Chip, ipus: u32) -> SystemDef {
    // Pods of a whole rack close the ladder (POD64 data sheet). Smaller ones leave it open.
    let topology = if ipus >= RACK_IPUS { IpuLinkTopology::Torus } else { IpuLinkTopology::Mesh };
    SystemDef { name, chip, ipus, topology, link_domain: RACK_IPUS }
}

/// The system of a spec that does not name one.
pub(crate) const DEFAULT_SYSTEM: &SystemDef = &system("mk2", &MK2, 256);

/// All systems, each family from small to large. A bare chip stands for any number of IPUs up to
/// the largest pod.
pub(crate) const SYSTEMS: &[SystemDef] = &[
    SystemDef { topology: IpuLinkTopology::BarleyTwist, ..system("mk1", &MK1, C2_SERVER_IPUS) },
    SystemDef { topology: IpuLinkTopology::BarleyTwist, ..system("c2_card", &MK1, 2) },
    *DEFAULT_SYSTEM,
    system("m2000", &MK2, 4),
    system("pod4", &MK2, 4),
    system("pod16", &MK2, 16),
    system("pod32", &MK2, 32),
    system("pod64", &MK2, 64),
    system("pod128", &MK2, 128),
    system("pod256", &MK2, 256),
    system("bow", &BOW, 256),
    system("bow2000", &BOW, 4),
    system("bow_pod4", &BOW, 4),
    system("bow_pod16", &BOW, 16),
    system("bow_pod32", &BOW, 32),
    system("bow_pod64", &BOW, 64),
    system("bow_pod128", &BOW, 128),
    system("bow_pod256", &BOW, 256),
    // Up to eight cards share IPU-Links (C600 data sheet).
    system("c600", &C600, 8),
];

/// The system names that a spec may use, in the order of [`SYSTEMS`].
pub(crate) const SYSTEM_NAMES: [&str; SYSTEMS.len()] = names();

const fn names() -> [&'static str; SYSTEMS.len()] {
    let mut names = [""; SYSTEMS.len()];
    let mut at = 0;
    while at < SYSTEMS.len() {
        names[at] = SYSTEMS[at].name;
        at += 1;
    }
    names
}

/// Returns the system with the given name.
pub(crate) fn find_system(name: &str) -> Option<&'static SystemDef> {
    SYSTEMS.iter().find(|system| system.name == name)
}

/// Returns the smallest system of the same chip with at least `ipus` IPUs.
pub(crate) fn smallest_system_with(system: &SystemDef, ipus: u32) -> Option<&'static SystemDef> {
    let same = SYSTEMS.iter().filter(|other| other.chip.name == system.chip.name);
    // A bare chip cannot be bought as a machine. Name it only if no machine is large enough.
    same.filter(|other| other.ipus >= ipus)
        .min_by_key(|other| (other.ipus, other.name == other.chip.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_is_found_and_its_size_is_a_power_of_two() {
        for (position, system) in SYSTEMS.iter().enumerate() {
            assert_eq!(find_system(system.name), Some(system));
            assert!(system.ipus.is_power_of_two(), "{}", system.name);
            assert!(SYSTEMS[..position].iter().all(|other| other.name != system.name));
            assert!(super::super::CHIPS.contains(&system.chip), "{}", system.name);
        }
    }

    #[test]
    fn ladders_close_only_if_a_program_fills_the_rack() {
        use IpuLinkTopology::{BarleyTwist, Mesh, Torus};
        let joined = |name: &str, ipus| find_system(name).expect("a system").topology_of(ipus);
        for name in ["mk2", "pod64", "bow_pod128"] {
            assert_eq!([16, 60, 64].map(|ipus| joined(name, ipus)), [Mesh, Mesh, Torus]);
        }
        assert_eq!([joined("pod16", 16), joined("pod256", 128)], [Mesh, Torus]);
        assert_eq!([joined("mk1", 8), joined("mk1", 16)], [Mesh, BarleyTwist]);
    }

    #[test]
    fn the_next_system_is_the_smallest_that_fits() {
        let next = |name: &str, ipus| {
            smallest_system_with(find_system(name).expect("a system"), ipus)
                .map(|system| system.name)
        };
        assert_eq!(next("pod4", 16), Some("pod16"));
        assert_eq!(next("bow2000", 200), Some("bow_pod256"));
        assert_eq!(next("c2_card", 4), Some("mk1"));
        assert_eq!(next("c600", 16), None);
    }
}
