//! Senders and receivers of exchanges. A report states the bytes that every tile sends and receives
//! in each exchange, and for most bytes who sends to whom; all other flows are assumed to be
//! proportional.

use super::ExchangeLink;
use tilescope_report::units::{Bytes, ProgramId, TileRange, TileRuns};
use tilescope_report::{
    ExchangeRoute, ExchangeTraffic, Rearrangement, Report, ReportError, RoutePattern, TileGroups,
};

/// Senders and receivers of one exchange, or of one part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeFlow {
    pub program: ProgramId,
    pub link: ExchangeLink,
    /// Bytes that each sender delivers, a multicast once per receiver.
    pub sent: TileRuns<Bytes>,
    /// Bytes that each receiver gets.
    pub received: TileRuns<Bytes>,
    /// Bytes of the flow.
    pub bytes: Bytes,
    pub pattern: ExchangePattern,
}

/// The correspondence of senders and receivers of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExchangePattern {
    /// The data sent first arrives first: the report states the order.
    InOrder,
    /// Data change their order as the report states.
    Rearranged(Rearrangement),
    /// Every sender sends the same number of bytes to all other receivers of its group.
    Broadcast(TileGroups),
    /// Every receiver gets the same number of bytes from all other senders of its group.
    Gather(TileGroups),
    /// Every sender serves every receiver in proportion. No other pattern is possible, because
    /// there is only one sender or one receiver, or because every receiver gets all data.
    EachToAll,
    /// The same, but assumed: only the totals of both ends are recorded, for all tiles together or
    /// for each group.
    Assumed(Option<TileGroups>),
}

impl ExchangePattern {
    /// True if the report states who sends to whom.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Assumed(_))
    }
}

/// All flows of a report between tiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExchangeFlows {
    pub flows: Vec<ExchangeFlow>,
    /// Tiles of the replica.
    pub tiles: u32,
}

impl ExchangeFlows {
    /// Reads the senders and receivers of all exchanges.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn read(report: &Report) -> Result<Self, ReportError> {
        let programs = report.programs()?;
        let routes = report.routes_by_program()?;
        let mut flows = Vec::new();
        for exchange in report.exchanges()? {
            let kind = programs.get(exchange.program).map(|program| program.kind);
            let link = kind.map_or(ExchangeLink::Internal, ExchangeLink::from_program_kind);
            // The other end of a host copy is not a tile.
            if link == ExchangeLink::Host {
                continue;
            }
            match routes.get(&exchange.program) {
                Some(routes) => {
                    flows.extend(routes.iter().map(|route| flow_along_route(link, route)));
                }
                None => flows.push(in_proportion(&exchange, link)),
            }
        }
        flows.retain(|flow| flow.bytes > Bytes::ZERO);
        Ok(Self { flows, tiles: report.target()?.tiles_per_replica() })
    }

    /// The smallest range of tiles that holds all senders and receivers of a program.
    pub fn tiles_of(&self, program: ProgramId) -> Option<TileRange> {
        let own = self.flows.iter().filter(|flow| flow.program == program);
        let ends = own.flat_map(|flow| [&flow.sent, &flow.received]);
        let ranges = ends.flat_map(|tiles| tiles.iter().map(|(range, _)| range));
        ranges
            .reduce(|all, range| TileRange::new(all.first.min(range.first), all.end.max(range.end)))
    }
}

fn in_proportion(exchange: &ExchangeTraffic, link: ExchangeLink) -> ExchangeFlow {
    let received = exchange.tiles.map(|tile| tile.bytes_in).filtered(|bytes| *bytes > Bytes::ZERO);
    let sent =
        exchange.tiles.map(|tile| tile.bytes_delivered).filtered(|bytes| *bytes > Bytes::ZERO);
    // All sent data, with a multicast counted once: an upper bound for any receiver.
    let all = exchange.tiles.map(|tile| tile.bytes_out).total();
    let alone = |ends: &TileRuns<Bytes>| ends.tile_count() == 1;
    let all_of_it = received.iter().all(|(_, bytes)| *bytes == all);
    let pattern = if alone(&sent) || alone(&received) || all_of_it {
        ExchangePattern::EachToAll
    } else {
        ExchangePattern::Assumed(None)
    };
    let bytes = received.total();
    ExchangeFlow { program: exchange.program, link, sent, bytes, received, pattern }
}

fn flow_along_route(link: ExchangeLink, route: &ExchangeRoute) -> ExchangeFlow {
    let pattern = match &route.pattern {
        RoutePattern::InOrder => ExchangePattern::InOrder,
        RoutePattern::Rearranged(order) => ExchangePattern::Rearranged(order.clone()),
        RoutePattern::Broadcast(groups) => ExchangePattern::Broadcast(groups.clone()),
        RoutePattern::Gather(groups) => ExchangePattern::Gather(groups.clone()),
        RoutePattern::Unknown(groups) => ExchangePattern::Assumed(Some(groups.clone())),
    };
    let sent = route.delivered();
    let received = route.received();
    let bytes = route.bytes();
    ExchangeFlow { program: route.program, link, sent, received, bytes, pattern }
}
