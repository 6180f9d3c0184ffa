//! `Col2Im`, the sum of the blocks of an image (`torch.nn.Fold`).

use super::{Compose, Composed, NodeComposition, only, signed, sizes};
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::ValueId;

pub(super) const OPS: &[(&str, Compose)] = &[("Col2Im", col2im)];

/// An axis of an image, and its blocks.
struct BlockAxis {
    size: u64,
    /// Elements of a block.
    block: u64,
    /// Number of blocks.
    count: u64,
    /// Elements before and after the image.
    pads: [u64; 2],
}

impl BlockAxis {
    fn padded(&self) -> u64 {
        self.size.saturating_add(self.pads[0]).saturating_add(self.pads[1])
    }

    /// True if the blocks are next to each other and cover the image.
    fn is_tiled(&self, stride: u64, dilation: u64) -> bool {
        self.pads == [0; 2]
            && (dilation == 1 || self.block == 1)
            && stride == self.block
            && Some(self.size) == self.block.checked_mul(self.count)
    }
}

/// A list attribute with a number for each axis, or for each side of each axis.
fn numbers(
    of: &NodeComposition,
    name: &str,
    count: usize,
    default: u64,
) -> Result<Vec<u64>, OnnxError> {
    let Some(given) = of.attributes.ints(name)? else { return Ok(vec![default; count]) };
    sizes(given)
        .filter(|numbers| numbers.len() == count)
        .ok_or_else(|| of.error(format!("{name} {given:?} do not fit {count} numbers")))
}

fn col2im(of: &mut NodeComposition) -> Composed {
    let x = of.input(0)?;
    let [image, blocks] = [of.input(1)?, of.input(2)?].map(|id| of.known_sizes(id));
    let (Some(image), Some(blocks)) = (image, blocks) else {
        return Err(of.error("its sizes are not constant, or below zero"));
    };
    let rank = image.len();
    let dilations = numbers(of, "dilations", rank, 1)?;
    let strides = numbers(of, "strides", rank, 1)?;
    let pads = numbers(of, "pads", 2 * rank, 0)?;
    let dims = of.dims(x);
    let [batch, rows, columns] = dims[..] else {
        return Err(of.error(format!("columns of shape {dims:?} are not modelled")));
    };
    if blocks.len() != rank || rank == 0 || strides.contains(&0) || blocks.contains(&0) {
        return Err(of.error("its block does not fit its image"));
    }
    let mut axes = Vec::new();
    let mut is_tiled = true;
    for at in 0..rank {
        let mut axis = BlockAxis {
            size: image[at],
            block: blocks[at],
            count: 0,
            pads: [pads[at], pads[at + rank]],
        };
        let reach = dilations[at].saturating_mul(axis.block - 1).saturating_add(1);
        let room = axis.padded().checked_sub(reach);
        let room = room.ok_or_else(|| of.error("its block is larger than its image"))?;
        axis.count = room / strides[at] + 1;
        is_tiled &= axis.is_tiled(strides[at], dilations[at]);
        axes.push(axis);
    }
    let elements = blocks.iter().copied().fold(1, u64::saturating_mul);
    let count = axes.iter().map(|axis| axis.count).fold(1, u64::saturating_mul);
    if rows % elements != 0 || count != columns || columns == 0 || rows == 0 || batch == 0 {
        return Err(of.error(format!("columns of shape {dims:?} do not fit its blocks")));
    }
    let channels = rows / elements;
    let y = if is_tiled {
        tiled(of, x, [batch, channels], &axes)?
    } else {
        summed(of, x, [batch, channels, elements.saturating_mul(columns)], &axes)?
    };
    only(y)
}

/// Blocks that do not overlap: each element once.
fn tiled(
    of: &mut NodeComposition,
    x: ValueId,
    [batch, channels]: [u64; 2],
    axes: &[BlockAxis],
) -> Result<ValueId, OnnxError> {
    let mut apart = vec![batch, channels];
    apart.extend(axes.iter().map(|axis| axis.block));
    apart.extend(axes.iter().map(|axis| axis.count));
    let apart = of.reshape("blocks", x, &apart)?;
    let mut order = vec![0, 1];
    for at in 2..2 + axes.len() {
        order.extend(signed(&[(at + axes.len()) as u64, at as u64]));
    }
    let turned = of.transpose("order", apart, &order)?;
    let mut shape = vec![batch, channels];
    shape.extend(axes.iter().map(|axis| axis.size));
    of.reshape("image", turned, &shape)
}

/// Blocks that overlap: rows added to an image with its pads, which are cut off.
fn summed(
    of: &mut NodeComposition,
    x: ValueId,
    [batch, channels, elements]: [u64; 3],
    axes: &[BlockAxis],
) -> Result<ValueId, OnnxError> {
    let images = batch.saturating_mul(channels);
    let padded: Vec<u64> = axes.iter().map(BlockAxis::padded).collect();
    let places = padded.iter().copied().fold(1, u64::saturating_mul);
    let rows = of.reshape("blocks", x, &[images, elements])?;
    let rows = of.transpose("rows", rows, &[1, 0])?;
    let numbers = of.table("places", ElementKind::Int64, vec![elements, 1])?;
    let sums = of.row_sums(rows, numbers, [places, images])?;
    let turned = of.transpose("images", sums, &[1, 0])?;
    let shape = [&[batch, channels], &padded[..]].concat();
    let mut y = of.reshape("padded", turned, &shape)?;
    for (at, axis) in axes.iter().enumerate() {
        let from = axis.pads[0];
        y = of.slice(&format!("image/{at}"), y, 2 + at, [from, from + axis.size])?;
    }
    Ok(y)
}
