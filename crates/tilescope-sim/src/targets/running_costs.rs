//! Running costs of a machine: its power and its price per hour.

use super::Chip;
use crate::cost_constants::{
    BOW2000_USD, BOW2000_WATTS, C600_WATTS, ConstantKind, CostConstant, HOST_SERVER_WATTS,
    M2000_USD, M2000_WATTS, MACHINE_LIFETIME_HOURS,
};
use tilescope_report::units::grouped;
use tilescope_report::{RunningCost, RunningCostBasis, RunningCostKind};

/// Machine in which IPUs of a chip are sold.
struct IpuMachine {
    /// Name of the chip.
    chip: &'static str,
    /// Name under which the machine is sold.
    name: &'static str,
    ipus: u32,
    /// Power of the machine, if published.
    watts: Option<&'static CostConstant>,
    /// List price of the machine, if published.
    price: Option<&'static CostConstant>,
}

/// One machine for each chip except Mk1: no power or price of C2 cards was published.
const MACHINES: &[IpuMachine] = &[
    IpuMachine {
        chip: "mk2",
        name: "IPU-M2000",
        ipus: 4,
        watts: Some(&M2000_WATTS),
        price: Some(&M2000_USD),
    },
    IpuMachine {
        chip: "bow",
        name: "Bow-2000",
        ipus: 4,
        watts: Some(&BOW2000_WATTS),
        price: Some(&BOW2000_USD),
    },
    IpuMachine { chip: "c600", name: "C600 card", ipus: 1, watts: Some(&C600_WATTS), price: None },
];

/// Currency of published prices.
const CURRENCY: &str = "USD";

fn basis_of(constant: &CostConstant) -> RunningCostBasis {
    match constant.kind {
        ConstantKind::Published | ConstantKind::Measured => RunningCostBasis::Published,
        ConstantKind::Fitted | ConstantKind::Assumed => RunningCostBasis::Assumed,
    }
}

/// Power of the machines that hold `ipus` IPUs and of `hosts` host servers. Empty if no power was
/// published.
pub(crate) fn published_power(chip: &Chip, ipus: u32, hosts: u32) -> Vec<RunningCost> {
    let Some((machine, watts)) = machine_of(chip).and_then(|of| Some((of, of.watts?))) else {
        return Vec::new();
    };
    vec![
        power_of(machine.name, ipus.div_ceil(machine.ipus), watts),
        power_of("host server", hosts.max(1), &HOST_SERVER_WATTS),
    ]
}

fn power_of(part: &str, count: u32, watts: &CostConstant) -> RunningCost {
    RunningCost {
        kind: RunningCostKind::Power,
        part: part.to_owned(),
        count: count.into(),
        each: watts.ratio(),
        currency: String::new(),
        basis: basis_of(watts),
        source: watts.source.to_owned(),
    }
}

/// Price per hour of the machines that hold `ipus` IPUs. Empty if no price was published.
pub(crate) fn published_price(chip: &Chip, ipus: u32) -> Vec<RunningCost> {
    let Some((machine, price)) = machine_of(chip).and_then(|of| Some((of, of.price?))) else {
        return Vec::new();
    };
    let hours = MACHINE_LIFETIME_HOURS.ratio();
    vec![RunningCost {
        kind: RunningCostKind::Price,
        part: format!("{} at its list price", machine.name),
        count: ipus.div_ceil(machine.ipus).into(),
        each: price.ratio() / hours,
        currency: CURRENCY.to_owned(),
        // The price is published. The period over which it is spread is not.
        basis: RunningCostBasis::Assumed,
        source: format!(
            "{} {CURRENCY} ({}), spread over {} hours, which is assumed; host servers, electricity \
             and space are not included",
            grouped(price.value_rounded()),
            price.source,
            grouped(MACHINE_LIFETIME_HOURS.value_rounded()),
        ),
    }]
}

fn machine_of(chip: &Chip) -> Option<&'static IpuMachine> {
    MACHINES.iter().find(|machine| machine.chip == chip.name)
}

#[cfg(test)]
mod tests {
    use super::super::{BOW, C600, MK1, MK2};
    use super::*;

    fn watts(chip: &Chip, ipus: u32) -> f64 {
        published_power(chip, ipus, 1).iter().map(|part| part.count as f64 * part.each).sum()
    }

    #[test]
    fn power_covers_the_machines_of_a_program() {
        assert_eq!(watts(&MK2, 1), 1_100.0 + 900.0);
        assert_eq!(watts(&MK2, 16), 4.0 * 1_100.0 + 900.0);
        assert_eq!(watts(&BOW, 64), 16.0 * 1_250.0 + 900.0);
        assert_eq!(watts(&C600, 2), 2.0 * 185.0 + 900.0);
    }

    #[test]
    fn unpublished_costs_are_omitted() {
        assert_eq!(published_power(&MK1, 2, 1), []);
        assert_eq!(published_price(&MK1, 2), []);
        assert_eq!(published_price(&C600, 2), []);
    }
}
