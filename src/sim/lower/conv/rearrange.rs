//! Operands and results that lie elsewhere, or otherwise, than a plan wants them.
//!
//! Data whose innermost dimension is another one is regrouped first: blocks of the two groupings
//! are brought to one tile each and transposed there (popops `Rearrange.cpp`). Then it moves to
//! where the plan wants it. Both moves cost their bytes in the exchange and
//! [`REARRANGE_CYCLES_PER_BYTE`] on the tile.

use super::build::{Builder, Flow, copies, messages, vertex_on};
use crate::report::Category;
use crate::sim::graph::DType;
use crate::sim::lower::constants::REARRANGE_CYCLES_PER_BYTE;
use crate::sim::planner::Machine;
use crate::sim::planner::estimate::elementwise;

/// Messages a tile receives and sends when data moves to another mapping with the same innermost
/// dimension, and when that changes too. Guessed from the exchange code of published profiles.
const PLAIN_MESSAGES: u64 = 4;
const TRANSPOSING_MESSAGES: u64 = 16;

/// Blocks of a tensor: how many elements of each of two dimensions lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Elements of the dimension that is innermost now.
    pub from: u64,
    /// Elements of the dimension that becomes innermost.
    pub to: u64,
}

impl Blocks {
    /// Smaller blocks of the same elements, if that spreads them over more tiles: the larger side
    /// is cut by its prime factors while there are no more blocks than tiles, down to `least`.
    pub fn spread(self, elements: u64, tiles: u64, least: u64) -> Self {
        let mut blocks = self;
        let fits = |blocks: &Self| blocks.count(elements) <= tiles;
        loop {
            let sides = if blocks.from >= blocks.to { [true, false] } else { [false, true] };
            let smaller = sides.into_iter().find_map(|from| {
                let side = if from { blocks.from } else { blocks.to };
                let factor =
                    (2..=side / least).find(|factor| side.is_multiple_of(factor * least))?;
                let cut = side / factor;
                let smaller =
                    if from { Self { from: cut, ..blocks } } else { Self { to: cut, ..blocks } };
                fits(&smaller).then_some(smaller)
            });
            match smaller {
                Some(smaller) => blocks = smaller,
                None => return blocks,
            }
        }
    }

    /// Blocks that hold `elements`.
    pub fn count(&self, elements: u64) -> u64 {
        elements.div_ceil((self.from * self.to).max(1))
    }
}

/// Smallest grouping that is worth a regroup: 4 halves or 2 floats.
pub fn regroup_grain(data_type: DType) -> u64 {
    match data_type {
        DType::Float => 2,
        DType::Quarter => 8,
        _ => 4,
    }
}

/// Bytes of each of `tiles` tiles of a tensor spread evenly in grains of `grain_bytes`.
pub fn spread(bytes: u64, grain_bytes: u64, tiles: u64) -> Vec<u64> {
    let grain = grain_bytes.max(1);
    let grains = bytes.div_ceil(grain);
    let at = |tile: u64| {
        let grain_index = (u128::from(tile) * u128::from(grains)).div_ceil(u128::from(tiles));
        (grain_index as u64 * grain).min(bytes)
    };
    (0..tiles).map(|tile| at(tile + 1) - at(tile)).collect()
}

/// Moves tensors to other tiles: `bytes` per tile arrive, are arranged, and stay until `until`
/// says otherwise.
pub fn relocate(
    builder: &mut Builder,
    machine: &Machine,
    name: &str,
    bytes: &[u64],
    transposing: bool,
) {
    let messages_in = if transposing { TRANSPOSING_MESSAGES } else { PLAIN_MESSAGES };
    let flow = bytes.iter().map(|&bytes| Flow {
        received: bytes,
        sent: bytes,
        messages_in: if bytes > 0 { messages_in.max(messages(bytes)) } else { 0 },
        paired: false,
    });
    builder.exchange(machine, format!("{name}/ExchangePre"), &[flow.collect()]);
    let cycles: Vec<u64> = bytes.iter().map(|bytes| arrange_cycles(*bytes)).collect();
    builder.compute(format!("{name}/OnTileCopy-0"), &cycles, copies(machine, &cycles));
}

/// Cycles to arrange `bytes` on a tile.
pub fn arrange_cycles(bytes: u64) -> u64 {
    (bytes as f64 * REARRANGE_CYCLES_PER_BYTE).round() as u64
}

/// A tensor whose blocks are transposed where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transposition {
    /// Size of its blocks.
    pub blocks: Blocks,
    /// Blocks of each tile.
    pub counts: Vec<u64>,
}

impl Transposition {
    /// `elements` in blocks that are dealt out evenly over all `tiles`.
    pub fn dealt(blocks: Blocks, elements: u64, tiles: u64, least: u64) -> Self {
        let blocks = blocks.spread(elements, tiles, least);
        Self { blocks, counts: spread(blocks.count(elements), 1, tiles) }
    }

    /// Bytes of the blocks of each tile.
    pub fn bytes(&self, data_type: DType) -> impl Iterator<Item = u64> {
        let block = self.blocks.from * self.blocks.to * data_type.bytes();
        self.counts.iter().map(move |count| count * block)
    }
}

/// Brings the blocks of `tensors` together and transposes them.
pub fn regroup(
    builder: &mut Builder,
    machine: &Machine,
    names: [String; 2],
    data_type: DType,
    tensors: &[Transposition],
) {
    let mut bytes = vec![0; machine.tiles as usize];
    for tensor in tensors {
        bytes.iter_mut().zip(tensor.bytes(data_type)).for_each(|(sum, bytes)| *sum += bytes);
    }
    let [name, transpose_name] = names;
    let start = builder.position();
    relocate(builder, machine, &name, &bytes, true);
    transpose(builder, machine, transpose_name, data_type, tensors);
    temporary(builder, name, start, &bytes);
}

/// Transposes blocks that lie on their tiles. Vertices for all workers run one after the other,
/// vertices of one worker side by side.
pub fn transpose(
    builder: &mut Builder,
    machine: &Machine,
    name: String,
    data_type: DType,
    tensors: &[Transposition],
) {
    let tiles = tensors.iter().map(|tensor| tensor.counts.len()).max().unwrap_or(0);
    let (mut shared, mut single) = (vec![0; tiles], vec![0; tiles]);
    let mut vertices = Vec::new();
    for Transposition { blocks, counts } in tensors {
        let on_one = |count: u64| count == 1;
        for (tile, count) in counts.iter().enumerate() {
            let cycles = elementwise::transpose(machine, *count, blocks.from, blocks.to, data_type);
            if on_one(*count) {
                single[tile] = cycles.max(single[tile]);
            } else {
                shared[tile] += cycles;
            }
        }
        let kind = |kind: &str| format!("poplar_rt::{kind}<{}>", data_type.poplar_name());
        let is = |one: bool| {
            counts.iter().map(move |count| u64::from(*count > 0 && on_one(*count) == one))
        };
        vertices.push(vertex_on(kind("Transpose"), is(true), 2));
        vertices.push(vertex_on(kind("Transpose1D"), is(false), 2));
    }
    vertices.retain(|vertex| !vertex.count.is_empty());
    let cycles: Vec<u64> =
        shared.iter().zip(&single).map(|(shared, single)| shared + single).collect();
    builder.compute(name, &cycles, vertices);
}

/// Temporary copies of a rearranged tensor.
pub fn temporary(builder: &mut Builder, name: String, from: usize, bytes: &[u64]) {
    builder.temporary(name, Category::Rearrangement, false, from, bytes);
}
