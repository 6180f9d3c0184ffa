//! Dimensions of memory expressed in the axes of a shape.

use super::element_order::{AxisDim, Grouping};

/// Dimensions of memory along the axes of a shape, outermost first.
pub(super) struct ShapedMemory {
    pub dims: Vec<AxisDim>,
    pub grouping: Grouping,
}

impl ShapedMemory {
    /// Index of the dimension that counts groups if the last group is short.
    pub(super) fn short_groups(&self) -> Option<usize> {
        let Grouping { rest, is_only, .. } = self.grouping;
        let group = self.dims.last().filter(|_| rest > 0 && !is_only)?;
        let counts_groups =
            |dim: &AxisDim| dim.axis == group.axis && dim.step == group.step * group.size;
        self.dims.iter().position(counts_groups)
    }

    /// Changes the size of an axis.
    pub(super) fn resize(&mut self, axis: usize, size: u64) {
        let is_group = self.dims.last().is_some_and(|dim| dim.axis == axis);
        let is_short = is_group && self.grouping.rest > 0;
        let parts: Vec<AxisDim> =
            self.dims.iter().filter(|dim| dim.axis == axis).copied().collect();
        let Some((innermost, outer)) = parts.split_last() else {
            // Each element of the new axis is a separate tensor.
            self.dims.insert(0, AxisDim { axis, size, step: 1 });
            return;
        };
        let group = innermost.size;
        let of_groups = match outer {
            [] => true,
            [groups] => groups.step == group && !self.grouping.is_only,
            _ => false,
        };
        if is_group && innermost.step == 1 && of_groups && (size > group || is_short) {
            // The former axis is now one group of the new one, or the number of groups changes.
            let groups = AxisDim { axis, size: size.div_ceil(group), step: group };
            match self.dims.iter().position(|dim| dim.axis == axis && dim.step > 1) {
                Some(at) => self.dims[at] = groups,
                None => self.dims.insert(0, groups),
            }
            self.grouping.rest = size % group;
            self.grouping.is_only = (1..group).contains(&size);
            return;
        }
        // Parts of the axis whose distance exceeds its length have one element.
        self.dims.retain(|dim| dim.axis != axis || dim.step < size);
        let parts = self.dims.iter_mut().filter(|dim| dim.axis == axis);
        match parts.max_by_key(|dim| dim.step) {
            // The outermost part absorbs the change of size.
            Some(outermost) if size.is_multiple_of(outermost.step) && !is_short => {
                outermost.size = size / outermost.step;
            }
            _ => {
                // Otherwise the axis becomes contiguous at the position of its innermost part.
                let innermost = self.dims.iter().rposition(|dim| dim.axis == axis);
                let behind = self.dims.split_off(innermost.map_or(0, |at| at + 1));
                self.dims.retain(|dim| dim.axis != axis);
                self.dims.push(AxisDim { axis, size, step: 1 });
                self.dims.extend(behind);
            }
        }
        if is_group {
            let group = self.dims.last().map_or(1, |dim| dim.size).min(self.grouping.group);
            self.grouping = Grouping { group, ..Grouping::NONE };
        }
    }
}
