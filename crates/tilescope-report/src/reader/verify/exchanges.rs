//! Traffic of tiles compared with their bandwidth in the cycles of the exchange.

use super::{InvariantCheck, InvariantViolation, Report};
use crate::error::ReportError;
use crate::model::{ProgramKind, TileTraffic};
use crate::units::{Bytes, IpuId};

/// The relative excess of a duration that rounding of fractions can cause.
const ROUNDING: f64 = 1e-6;

impl Report {
    /// Checks that no tile sends or receives more in an exchange than its bandwidth allows.
    pub(super) fn verify_exchanges(
        &self,
        found: &mut Vec<InvariantViolation>,
    ) -> Result<(), ReportError> {
        let limits = self.machine_limits()?;
        let target = self.target()?;
        let programs = self.programs()?;
        let mut law = InvariantCheck::new("exchanges_hold", found);
        for exchange in self.exchanges()? {
            let kind = programs.get(exchange.program).map(|program| program.kind);
            if kind != Some(ProgramKind::DoExchange) || exchange.cycles.is_empty() {
                continue;
            }
            let mut cycles = exchange.cycles.iter().peekable();
            for tiles in (0..target.ipus_per_replica).map(|ipu| target.tiles_of_ipu(IpuId(ipu))) {
                let iter_own = || {
                    let runs = exchange.tiles.iter();
                    let runs = runs.map(move |(run, of)| (run.intersection(tiles), of));
                    runs.filter(|(run, _)| run.count() > 0)
                };
                let add_up = |bytes: fn(&TileTraffic) -> Bytes| {
                    let all =
                        iter_own().map(|(run, of)| bytes(of).saturating_mul(run.count().into()));
                    all.fold(Bytes::ZERO, Bytes::saturating_add)
                };
                let repeated = add_up(|of| of.bytes_in).saturating_sub(add_up(|of| of.bytes_out));
                for (run, of) in iter_own() {
                    let Some(needed) = limits.tile_exchange_cycles(of, repeated) else { break };
                    while let Some((busy, taken)) = cycles.peek() {
                        let both = busy.intersection(run);
                        law.check(both.count() == 0 || needed <= taken.as_f64() + ROUNDING, || {
                            let id = exchange.program.0;
                            let tile = both.first;
                            let received = of.bytes_in.0;
                            let sent = of.bytes_out.0;
                            format!(
                                "program {id}: tile {tile} receives {received} B and sends {sent} \
                                 B in {taken} cycles, but needs {needed:.1}"
                            )
                        });
                        // The next tiles may take the same time.
                        if busy.end > run.end {
                            break;
                        }
                        cycles.next();
                    }
                }
            }
        }
        Ok(())
    }
}
