//! Measurements of single tiles: the start and end of each step on each of them.

use crate::codec::{VarintReader, write_varint};
use crate::units::{CycleRange, Cycles, TileId};

/// The activity of a tile in a measured step.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum SampleKind {
    /// Sending and receiving.
    Exchange,
    Compute,
    /// Waiting for other tiles.
    Synchronization,
    /// Idle, while others work.
    Idle,
}

impl SampleKind {
    /// All kinds.
    pub const ALL: [SampleKind; 4] =
        [Self::Exchange, Self::Compute, Self::Synchronization, Self::Idle];

    /// The name in the file, in tables and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exchange => "exchange",
            Self::Compute => "compute",
            Self::Synchronization => "synchronization",
            Self::Idle => "idle",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The description of samples; many samples share one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SampleLabel {
    pub kind: SampleKind,
    /// The operation that the tile worked for; empty if it was not recorded.
    pub operation: String,
    /// The vertex type that it ran; empty if it ran none.
    pub kernel: String,
    /// Metadata that users attached, as names and values.
    pub metadata: Vec<(String, String)>,
}

impl SampleLabel {
    /// The value of a name in its metadata.
    pub fn metadata(&self, name: &str) -> Option<&str> {
        self.metadata.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The activity of a tile at a time within an exchange, as its compiler planned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExchangeActivityKind {
    Send,
    Receive,
    /// The tile that shares its bus sends.
    PartnerBusy,
}

impl ExchangeActivityKind {
    /// All kinds. The position of a kind is its number in the file.
    pub const ALL: [ExchangeActivityKind; 3] = [Self::Send, Self::Receive, Self::PartnerBusy];
}

/// A period of an exchange in which a tile is busy: planned, not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeActivity {
    pub kind: ExchangeActivityKind,
    /// Cycles after the start of the exchange.
    pub start: u32,
    pub end: u32,
}

impl ExchangeActivity {
    /// Its length; 0 if it ends before it starts.
    pub fn cycles(&self) -> Cycles {
        Cycles(self.end.saturating_sub(self.start).into())
    }

    /// The encoding in a file: three LEB128 numbers for each period. None if there are no periods.
    pub fn pack(all: &[Self]) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        for activity in all {
            let kind = ExchangeActivityKind::ALL.into_iter().position(|kind| kind == activity.kind);
            for number in [kind.unwrap_or(0) as u64, activity.start.into(), activity.end.into()] {
                write_varint(&mut bytes, number);
            }
        }
        if bytes.is_empty() { None } else { Some(bytes) }
    }

    /// Decodes packed periods, if they are sound.
    pub(crate) fn unpack(bytes: &[u8]) -> Option<Vec<Self>> {
        let mut reader = VarintReader::new(bytes);
        let mut found = Vec::new();
        while !reader.is_done() {
            let kind = usize::try_from(reader.take()?).ok()?;
            let kind = ExchangeActivityKind::ALL.get(kind).copied()?;
            let mut read_cycle = || u32::try_from(reader.take()?).ok();
            found.push(Self { kind, start: read_cycle()?, end: read_cycle()? });
        }
        Some(found)
    }
}

/// The start and end of a step on a tile, by the tile's own counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileSample {
    pub tile: TileId,
    /// Index into the report's [`SampleLabel`]s.
    pub label: u32,
    /// Number of the phase of the program.
    pub phase: u32,
    /// Number of earlier runs of the program.
    pub epoch: u32,
    /// Number of the step on its tile.
    pub local_index: u32,
    pub cycles: CycleRange,
    /// Cycles that the compiler planned for the tile's part of an exchange; 0 for none.
    pub exchange_cycles: Cycles,
    pub activities: Vec<ExchangeActivity>,
}

impl TileSample {
    /// The larger of the planned cycles in which the tile sends and in which it receives; `None` if
    /// no plan was recorded.
    pub fn endpoint_cycles(&self) -> Option<Cycles> {
        let add_up = |wanted: ExchangeActivityKind| -> Cycles {
            let own = self.activities.iter().filter(|activity| activity.kind == wanted);
            own.map(ExchangeActivity::cycles).sum()
        };
        let busy = add_up(ExchangeActivityKind::Send).max(add_up(ExchangeActivityKind::Receive));
        if self.activities.is_empty() { None } else { Some(busy) }
    }
}
