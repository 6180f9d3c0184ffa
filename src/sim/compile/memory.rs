//! All variables of a program, placed on the tiles.

use super::fragments::{Extra, Maker};
use super::tensors::{Home, Part};
use crate::report::{Category, Variable};
use crate::sim::graph::TensorId;
use crate::sim::lower::allocate::{self, Allocation, Wanted};
use crate::sim::lower::work::Place;
use crate::sim::targets::Chip;
use crate::units::TileRuns;
use std::ops::Range;

/// The variables of a program and where they lie.
pub struct Memory {
    /// Variables of the report.
    pub variables: Vec<Variable>,
    /// Sums and owners per tile.
    pub allocation: Allocation,
}

/// Collects all variables and places them.
pub fn place(maker: &mut Maker, chip: &Chip, tiles: u32) -> Memory {
    let mut wanted = tensor_variables(maker);
    maker.upload_code();
    wanted.append(&mut maker.extras);
    wanted.extend(code_variables(maker));
    let requests: Vec<Wanted> = wanted
        .iter()
        .map(|variable| Wanted {
            category: variable.category,
            lifetime: variable.lifetime.clone(),
            place: variable.place,
            bytes: variable.bytes.clone(),
        })
        .collect();
    let mut allocation = allocate::allocate(chip, &requests, tiles);
    fill_liveness(maker, &wanted);
    let placements = std::mem::take(&mut allocation.placements);
    let variables = wanted
        .into_iter()
        .zip(placements)
        .map(|(variable, tiles)| Variable {
            name: variable.name,
            category: variable.category,
            operation: variable.operation,
            shape: variable.shape,
            lifetime: variable.lifetime,
            tiles,
        })
        .collect();
    Memory { variables, allocation }
}

/// Tensors of the graph: kept ones on their IPU always, others while they are in use.
fn tensor_variables(maker: &mut Maker) -> Vec<Extra> {
    let steps = maker.tables.next_step();
    let homes: Vec<(Home, Range<u32>)> =
        maker.lifetimes.iter().map(|(home, span)| (*home, span.clone())).collect();
    homes
        .into_iter()
        .map(|(home, span)| {
            let tensor = maker.graph.tensor(home.tensor);
            let kept = tensor.role.is_persistent() && !maker.is_off_chip(home.tensor);
            let always = kept || span.end > steps;
            let suffix = match home.part {
                Part::Restored(_) => "/restored",
                Part::Made | Part::Received(_) => "",
            };
            Extra {
                name: format!("{}{suffix}", tensor.name),
                category: Category::Variable,
                operation: None,
                shape: tensor.ty.to_string(),
                lifetime: (!always).then_some(span),
                place: Place::Any,
                bytes: tensor_bytes(maker, home.tensor, home.ipu),
            }
        })
        .collect()
}

fn tensor_bytes(maker: &mut Maker, tensor: TensorId, ipu: u32) -> TileRuns<u64> {
    maker.bytes(tensor).shifted(ipu * maker.tables.tiles_per_ipu)
}

/// Code, vertex state and the like: one variable per category, named as libpva names them.
fn code_variables(maker: &Maker) -> impl Iterator<Item = Extra> {
    Category::ALL.into_iter().filter_map(|category| {
        let bytes = maker.tables.code.category(category);
        let bytes =
            TileRuns::from_tiles(0, bytes.iter().map(|bytes| (*bytes > 0).then_some(*bytes)));
        (!bytes.is_empty()).then(|| Extra {
            name: category.name().to_string(),
            category,
            operation: None,
            shape: String::new(),
            lifetime: None,
            place: Place::Any,
            bytes,
        })
    })
}

/// Sums the bytes of not-always-live variables at each liveness step.
fn fill_liveness(maker: &mut Maker, variables: &[Extra]) {
    let mut changes = vec![0i64; maker.tables.liveness.len() + 1];
    for variable in variables {
        if let Some(lifetime) = &variable.lifetime {
            let bytes = variable.bytes.total() as i64;
            changes[lifetime.start as usize] += bytes;
            changes[lifetime.end as usize] -= bytes;
        }
    }
    let mut live = 0;
    for (step, change) in maker.tables.liveness.iter_mut().zip(changes) {
        live += change;
        step.bytes = live as u64;
    }
}
