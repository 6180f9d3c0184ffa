//! Rows of single vertices: the formula of their cycles, without plan, layout or exchange.

use super::config::{RowConfig, RowProblem, floating_type};
use crate::poplin::estimate::ConvVertexWork;
use crate::poplin::estimate::amp::AmpCycleEstimator;
use crate::poplin::estimate::worker_partition::ConvOutputRows;
use crate::poplin::planner::vertex_candidates::{
    ConvMethod, ConvVertexType, weights_per_conv_unit,
};
use crate::targets::{Chip, IpuTarget};
use tilescope_report::units::Cycles;

/// The vertex type that rows may have.
const KNOWN_VERTEX: &str = "poplin::ConvPartial1x1Out";

/// Returns the cycles of a vertex for `rows` outputs of `out-channels` channels each, which are
/// equal on every tile.
pub(super) fn cycles(config: &RowConfig, chip: &'static Chip) -> Result<Cycles, RowProblem> {
    config.require_key("vertex")?;
    let vertex = conv_1x1(config.text("vertex").unwrap_or_default())?;
    let rows = config.required("rows")?;
    let in_channels = config.required("in-channels")?;
    let out_channels = config.required("out-channels")?;
    let conv_groups = config.number("conv-groups", 1)?;
    if rows == 0 || conv_groups == 0 {
        return Err(RowProblem::Unsupported("a vertex must have outputs".to_owned()));
    }
    let ConvMethod::Amp { conv_units } = vertex.method else {
        return Err(unknown_vertex(vertex.method.name()));
    };
    whole_groups("in-channels", in_channels, vertex.in_chans_per_group)?;
    whole_groups("out-channels", out_channels, conv_units)?;
    let vertex = ConvVertexType { out_chans_per_group: out_channels, ..vertex };
    let work = ConvVertexWork {
        batch: 1,
        field: [rows, 1, 1],
        kernel: [1; 3],
        conv_groups,
        in_groups: in_channels / vertex.in_chans_per_group,
        out_groups: 1,
    };
    let machine = IpuTarget::all_tiles_of(*chip);
    let engine = AmpCycleEstimator::new(&vertex, &machine, conv_units);
    Ok(engine.cycles_1x1(&work, ConvOutputRows { count: 1, length: rows }))
}

/// Parses a vertex type from its name in Poplar:
/// `poplin::ConvPartial1x1Out<input,partials,limited,128-bit loads,units,...>`.
fn conv_1x1(name: &str) -> Result<ConvVertexType, RowProblem> {
    let arguments = name
        .strip_prefix(KNOWN_VERTEX)
        .and_then(|rest| rest.strip_prefix('<')?.strip_suffix('>'))
        .ok_or_else(|| unknown_vertex(name))?;
    let arguments: Vec<&str> = arguments.split(',').collect();
    let [input, partials, _limited, wide, units, ..] = arguments[..] else {
        return Err(unknown_vertex(name));
    };
    let (Some(input_type), Some(partial_type)) = (floating_type(input), floating_type(partials))
    else {
        return Err(unknown_vertex(name));
    };
    let conv_units = units.parse().map_err(|_| unknown_vertex(name))?;
    if ![4, 8, 16].contains(&conv_units) {
        return Err(unknown_vertex(name));
    }
    Ok(ConvVertexType {
        method: ConvMethod::Amp { conv_units },
        input_type,
        partial_type,
        groups_per_group: 1,
        in_chans_per_group: weights_per_conv_unit(input_type),
        out_chans_per_group: conv_units,
        wide_weight_loads: wide == "true",
    })
}

fn unknown_vertex(name: &str) -> RowProblem {
    RowProblem::Unsupported(format!(
        "vertex: {name} cannot be simulated alone; known: \
         {KNOWN_VERTEX}<half,half,true,false,16,4,false> and the like"
    ))
}

/// Rejects channels that are not whole groups of the vertex.
fn whole_groups(key: &str, channels: u64, group: u64) -> Result<(), RowProblem> {
    if channels > 0 && channels.is_multiple_of(group) {
        return Ok(());
    }
    Err(RowProblem::Unsupported(format!("{key}: the vertex requires multiples of {group}")))
}
