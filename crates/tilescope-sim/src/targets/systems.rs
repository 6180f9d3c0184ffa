//! Machines by the names people buy them under: how many IPUs of which chip, and how they are
//! joined.

use super::{BOW, C600, Chip, MK1, MK2};

/// How the IPUs of a system are joined; decides how collectives go round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpuLinkTopology {
    /// A ladder of pairs with open ends.
    Mesh,
    /// A ladder whose ends are joined: a two-dimensional torus over machines.
    Torus,
    /// A ladder whose ends are joined crosswise (servers of C2 cards).
    BarleyTwist,
}

/// A system that a spec can name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SystemDef {
    /// Name in a spec.
    pub name: &'static str,
    pub chip: &'static Chip,
    pub ipus: u32,
    /// How they are joined where a program fills them.
    pub topology: IpuLinkTopology,
    /// IPUs that IPU-Links join; larger systems go over GW-Links from there.
    pub link_domain: u32,
}

impl SystemDef {
    /// How the IPUs of a program are joined that works on `ipus` of them. The links that join the
    /// ends of a ladder are at the ends of a rack, or of a server: a program that does not fill it
    /// has a ladder with open ends.
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
    // Pods of a whole rack close the ladder (POD64 data sheet); smaller ones leave it open.
    let topology = if ipus >= RACK_IPUS { IpuLinkTopology::Torus } else { IpuLinkTopology::Mesh };
    SystemDef { name, chip, ipus, topology, link_domain: RACK_IPUS }
}

/// The system of a spec that names none.
pub(crate) const DEFAULT_SYSTEM: &SystemDef = &system("mk2", &MK2, 256);

/// Every system, each family from small to large. A bare chip stands for as many as are asked for,
/// up to the largest pod.
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

/// The names a spec may use, in the order of [`SYSTEMS`].
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

/// The system of that name.
pub(crate) fn find_system(name: &str) -> Option<&'static SystemDef> {
    SYSTEMS.iter().find(|system| system.name == name)
}

/// The smallest system of the same chip that has `ipus` IPUs.
pub(crate) fn smallest_system_with(system: &SystemDef, ipus: u32) -> Option<&'static SystemDef> {
    let same = SYSTEMS.iter().filter(|other| other.chip.name == system.chip.name);
    // A bare chip is no machine one can buy; it is named only where nothing else is large enough.
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
    fn links_close_only_where_a_program_fills_the_rack() {
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
