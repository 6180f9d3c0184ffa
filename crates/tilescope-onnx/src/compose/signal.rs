//! Fourier transforms as products with tables of sines, and samples between the pixels of an image.

use super::{Compose, Composed, NodeComposition, only, signed};
use crate::attributes::AttributeValue;
use crate::element::ElementKind;
use crate::error::OnnxError;
use crate::graph::ValueId;

pub(super) const OPS: &[(&str, Compose)] = &[
    ("AffineGrid", affine_grid),
    ("DFT", dft),
    ("GridSample", grid_sample),
    ("RoiAlign", roi_align),
    ("STFT", stft),
];

/// Tables of cosines and sines, or sines with the other sign.
fn tables(
    of: &mut NodeComposition,
    element: ElementKind,
    [length, bins]: [u64; 2],
) -> Result<[ValueId; 2], OnnxError> {
    let dims = vec![length, bins];
    Ok([of.table("cosines", element, dims.clone())?, of.table("sines", element, dims)?])
}

/// Real and imaginary part of the transform of the last axis, along a new axis each.
fn transformed(
    of: &mut NodeComposition,
    real: ValueId,
    imaginary: Option<ValueId>,
    bins: u64,
) -> Result<[ValueId; 2], OnnxError> {
    let length = of.dims(real).last().copied().unwrap_or(1);
    let [cosines, sines] = tables(of, of.element(real), [length, bins])?;
    let mut a = of.node("real/cosines", "MatMul", &[real, cosines], &[])?;
    let mut b = of.node("real/sines", "MatMul", &[real, sines], &[])?;
    if let Some(imaginary) = imaginary {
        let of_sines = of.node("imaginary/sines", "MatMul", &[imaginary, sines], &[])?;
        let of_cosines = of.node("imaginary/cosines", "MatMul", &[imaginary, cosines], &[])?;
        a = of.node("real", "Sub", &[a, of_sines], &[])?;
        b = of.node("imaginary", "Add", &[b, of_cosines], &[])?;
    }
    Ok([a, b])
}

/// The real and imaginary parts of a tensor whose last axis they are.
fn parts_of(of: &mut NodeComposition, x: ValueId) -> Result<(ValueId, Option<ValueId>), OnnxError> {
    let mut dims = of.dims(x);
    let Some(parts) = dims.pop() else { return Err(of.error("it cannot transform a scalar")) };
    if parts == 1 {
        return Ok((of.reshape("signal", x, &dims)?, None));
    }
    let split = of.split("parts", x, -1, &[1, 1])?;
    let real = of.reshape("parts/real", split[0], &dims)?;
    Ok((real, Some(of.reshape("parts/imaginary", split[1], &dims)?)))
}

fn dft(of: &mut NodeComposition) -> Composed {
    let x = of.input(0)?;
    let rank = of.dims(x).len();
    let axis = match of.opset {
        ..20 => of.int("axis", 1)?,
        _ => match of.optional(2) {
            Some(axis) => {
                let known = of.known_ints(axis).and_then(|axis| axis.first().copied());
                known.ok_or_else(|| of.error("its axis is not constant"))?
            }
            None => -2,
        },
    };
    let axis = of.axis(axis, rank)?;
    if axis + 1 >= rank {
        return Err(of.error(format!("axis {axis} is the axis of real and imaginary parts")));
    }
    let is_half = of.int("onesided", 0)? != 0;
    let is_inverse = of.int("inverse", 0)? != 0;
    let size = of.dims(x)[axis];
    let wanted = match of.optional(1) {
        Some(length) => {
            let known = of.known_ints(length).and_then(|length| length.first().copied());
            let known = known.and_then(|length| u64::try_from(length).ok());
            known.ok_or_else(|| of.error("its length is not constant"))?
        }
        None => size,
    };
    // Trailing zeros of a signal do not change a sum.
    let x = of.slice("signal/length", x, axis, [0, wanted.min(size)])?;
    let bins = if is_half && !is_inverse { wanted / 2 + 1 } else { wanted };
    let (real, imaginary) = parts_of(of, x)?;
    let last: Vec<u64> =
        (0..rank as u64 - 1).filter(|at| *at != axis as u64).chain([axis as u64]).collect();
    let last = signed(&last);
    let real = of.transpose("signal/last", real, &last)?;
    let imaginary = match imaginary {
        Some(part) => Some(of.transpose("signal/last/imaginary", part, &last)?),
        None => None,
    };
    let made = transformed(of, real, imaginary, bins)?;
    let mut back: Vec<i64> = signed(&(0..rank as u64 - 2).collect::<Vec<u64>>());
    back.insert(axis, i64::try_from(rank).unwrap_or(2) - 2);
    let mut parts = Vec::new();
    // Half a spectrum transforms to a real signal.
    let kept = if is_half && is_inverse { 1 } else { 2 };
    for (at, part) in made.into_iter().take(kept).enumerate() {
        let turned = of.transpose(&format!("back/{at}"), part, &back)?;
        parts.push(of.unsqueeze(&format!("part/{at}"), turned, &[-1])?);
    }
    let y = of.concat("join", &parts, -1)?;
    only(y)
}

/// Frames of a signal, weighted by a window, and their transforms.
fn stft(of: &mut NodeComposition) -> Composed {
    let x = of.input(0)?;
    let get_number = |of: &NodeComposition, input: usize| -> Option<u64> {
        let known = of.known_ints(of.optional(input)?)?;
        u64::try_from(*known.first()?).ok()
    };
    let step = get_number(of, 1).filter(|step| *step > 0);
    let step = step.ok_or_else(|| of.error("the step between frames is missing"))?;
    let window = of.optional(2);
    let frame =
        get_number(of, 3).or_else(|| window.and_then(|window| of.dims(window).first().copied()));
    let frame = frame.ok_or_else(|| of.error("the frame length is missing"))?;
    let dims = of.dims(x);
    let length = dims.get(1).copied().unwrap_or(0);
    let Some(last) = length.checked_sub(frame) else {
        return Err(
            of.error(format!("the frame length {frame} exceeds the signal length {length}"))
        );
    };
    let frames = last / step + 1;
    let bins = if of.int("onesided", 1)? == 0 { frame } else { frame / 2 + 1 };
    let (real, imaginary) = if dims.len() == 2 { (x, None) } else { parts_of(of, x)? };
    let places: Vec<u64> =
        (0..frames).flat_map(|at| (0..frame).map(move |place| at * step + place)).collect();
    let mut cut = Vec::new();
    for (part, signal) in [("real", Some(real)), ("imaginary", imaginary)] {
        let Some(signal) = signal else { continue };
        let places = of.ints(signed(&places))?;
        let axis = [("axis", AttributeValue::Int(1))];
        let rows = of.node(&format!("{part}/frames"), "Gather", &[signal, places], &axis)?;
        let mut rows = of.reshape(&format!("{part}/rows"), rows, &[dims[0], frames, frame])?;
        if let Some(window) = window {
            rows = of.node(&format!("{part}/window"), "Mul", &[rows, window], &[])?;
        }
        cut.push(rows);
    }
    let mut parts = Vec::new();
    for (at, part) in transformed(of, cut[0], cut.get(1).copied(), bins)?.into_iter().enumerate() {
        parts.push(of.unsqueeze(&format!("part/{at}"), part, &[-1])?);
    }
    let y = of.concat("join", &parts, -1)?;
    only(y)
}

/// Pixels of an image at coordinates from -1 to 1: the nearest one, or four around each with
/// weights. Points outside are clamped to the edge.
fn grid_sample(of: &mut NodeComposition) -> Composed {
    let x = of.input(0)?;
    let grid = of.input(1)?;
    let dims = of.dims(x);
    let points = of.dims(grid);
    let ([batch, channels, height, width], [_, rows, columns, 2]) = (&dims[..], &points[..]) else {
        return Err(of.error(format!("points {points:?} of {dims:?} are not modelled")));
    };
    let mode = of.attributes.text("mode")?.unwrap_or("linear").to_owned();
    if mode.contains("cubic") {
        return Err(of.error("cubic interpolation is not modelled"));
    }
    let corners: &[[f64; 2]] = match mode.as_str() {
        "nearest" => &[[0.0, 0.0]],
        _ => &LINEAR,
    };
    let batch = *batch;
    let count = rows * columns;
    let element = of.element(x);
    let table = image_rows(of, x)?;
    let mut axes = Vec::new();
    let sides = of.split("grid", grid, 3, &[1, 1])?;
    for (part, side, size) in [("x", sides[0], *width), ("y", sides[1], *height)] {
        #[expect(clippy::cast_precision_loss, reason = "no image has 2^53 rows")]
        let half = of.number(element, size as f64 / 2.0)?;
        let one = of.number(element, 1.0)?;
        let side = of.reshape(&format!("{part}/flat"), side, &[batch, count])?;
        let shifted = of.node(&format!("{part}/shift"), "Add", &[side, one], &[])?;
        let place = of.node(&format!("{part}/place"), "Mul", &[shifted, half], &[])?;
        axes.push(ImageAxis::of(of, part, place, size)?);
    }
    let samples: Vec<u64> = (0..batch).map(|at| at * height * width).collect();
    let samples = of.ints(signed(&samples))?;
    let samples = of.cast("samples/type", samples, ElementKind::Int32)?;
    let samples = of.reshape("samples", samples, &[batch, 1])?;
    let [x_axis, y_axis] = &axes[..] else { return Ok(None) };
    let sum = corner_sum(of, table, [x_axis, y_axis], samples, corners)?;
    let image = of.reshape("field", sum, &[batch, *rows, *columns, *channels])?;
    let y = of.transpose("back", image, &[0, 3, 1, 2])?;
    only(y)
}

/// The pixels of images, one row for each.
fn image_rows(of: &mut NodeComposition, x: ValueId) -> Result<ValueId, OnnxError> {
    let dims = of.dims(x);
    let turned = of.transpose("image", x, &[0, 2, 3, 1])?;
    of.reshape("image/rows", turned, &[dims[0] * dims[2] * dims[3], dims[1]])
}

/// Places along an axis of an image: the element before each, and the share of the next one.
struct ImageAxis {
    floor: ValueId,
    share: ValueId,
    size: u64,
}

impl ImageAxis {
    fn of(
        of: &mut NodeComposition,
        part: &str,
        place: ValueId,
        size: u64,
    ) -> Result<Self, OnnxError> {
        let floor = of.node(&format!("{part}/floor"), "Floor", &[place], &[])?;
        let share = of.node(&format!("{part}/share"), "Sub", &[place, floor], &[])?;
        Ok(Self { floor, share, size })
    }
}

/// Places along an axis of this size; those outside move to its edge.
fn inside_of(
    of: &mut NodeComposition,
    part: &str,
    place: ValueId,
    size: u64,
) -> Result<ValueId, OnnxError> {
    let element = of.element(place);
    let low = of.number(element, 0.0)?;
    #[expect(clippy::cast_precision_loss, reason = "no image has 2^53 rows")]
    let high = of.number(element, size.saturating_sub(1) as f64)?;
    of.node(&format!("{part}/edge"), "Clip", &[place, low, high], &[])
}

/// The sum of the pixels at some corners around each place, with their weights. `samples` is the
/// first row of the image of each place.
fn corner_sum(
    of: &mut NodeComposition,
    table: ValueId,
    axes: [&ImageAxis; 2],
    samples: ValueId,
    corners: &[[f64; 2]],
) -> Result<ValueId, OnnxError> {
    let element = of.element(table);
    let mut sum: Option<ValueId> = None;
    for (at, corner) in corners.iter().enumerate() {
        let mut places = Vec::new();
        let mut weight: Option<ValueId> = None;
        for ((part, offset), axis) in ["x", "y"].into_iter().zip(corner).zip(axes) {
            let part = format!("corner/{at}/{part}");
            let offset_value = of.number(element, *offset)?;
            let place = of.node(&part, "Add", &[axis.floor, offset_value], &[])?;
            let place = inside_of(of, &part, place, axis.size)?;
            places.push(of.cast(&format!("{part}/index"), place, ElementKind::Int32)?);
            if corners.len() == 1 {
                continue;
            }
            let own = if *offset == 0.0 {
                let one = of.number(element, 1.0)?;
                of.node(&format!("{part}/rest"), "Sub", &[one, axis.share], &[])?
            } else {
                axis.share
            };
            weight = Some(match weight {
                Some(weight) => of.node(&format!("{part}/weight"), "Mul", &[weight, own], &[])?,
                None => own,
            });
        }
        let part = format!("corner/{at}");
        #[expect(clippy::cast_precision_loss, reason = "no image has 2^53 columns")]
        let line = of.number(ElementKind::Int32, axes[0].size as f64)?;
        let index = of.node(&format!("{part}/line"), "Mul", &[places[1], line], &[])?;
        let index = of.node(&format!("{part}/place"), "Add", &[index, places[0]], &[])?;
        let index = of.node(&format!("{part}/sample"), "Add", &[index, samples], &[])?;
        let mut rows = of.node(&format!("{part}/rows"), "Gather", &[table, index], &[])?;
        if let Some(weight) = weight {
            let weight = of.unsqueeze(&format!("{part}/column"), weight, &[-1])?;
            rows = of.node(&format!("{part}/weighed"), "Mul", &[rows, weight], &[])?;
        }
        sum = Some(match sum {
            Some(sum) => of.node(&format!("{part}/sum"), "Add", &[sum, rows], &[])?,
            None => rows,
        });
    }
    sum.ok_or_else(|| of.error("it has no points"))
}

/// The corners of linear interpolation.
const LINEAR: [[f64; 2]; 4] = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]];

/// The number of points along each side of a bin if the file leaves it to the size of the region,
/// as torchvision's detectors set it.
const POINTS_OF_BIN: u64 = 2;

/// Means of points in the bins of regions, each between four pixels.
fn roi_align(of: &mut NodeComposition) -> Composed {
    let [x, regions, images] = [of.input(0)?, of.input(1)?, of.input(2)?];
    let (dims, rows) = (of.dims(x), of.dims(regions));
    let ([_, channels, height, width], [count, 4]) = (&dims[..], &rows[..]) else {
        return Err(of.error(format!("regions {rows:?} of {dims:?} are not modelled")));
    };
    let count = *count;
    if count == 0 {
        return Ok(None);
    }
    let element = of.element(x);
    let bins = [of.size("output_width", 1)?, of.size("output_height", 1)?];
    let points = match of.size("sampling_ratio", 0)? {
        0 => POINTS_OF_BIN,
        points => points,
    };
    let samples_of_bins = bins.map(|size| size.saturating_mul(points));
    let scale = of.float("spatial_scale", 1.0)?;
    let scale = of.number(of.element(regions), scale)?;
    let scaled = of.node("regions", "Mul", &[regions, scale], &[])?;
    let scaled = of.cast("regions/type", scaled, element)?;
    let sides = of.split("sides", scaled, 1, &[1; 4])?;
    let table = image_rows(of, x)?;
    let mut axes = Vec::new();
    for (at, (part, size)) in [("x", *width), ("y", *height)].into_iter().enumerate() {
        let [from, to] = [sides[at], sides[at + 2]];
        let length = of.node(&format!("{part}/length"), "Sub", &[to, from], &[])?;
        let fractions =
            of.table(&format!("{part}/fractions"), element, vec![1, samples_of_bins[at]])?;
        let inside = of.node(&format!("{part}/inside"), "Mul", &[length, fractions], &[])?;
        let place = of.node(&format!("{part}/place"), "Add", &[inside, from], &[])?;
        let place = inside_of(of, part, place, size)?;
        let mut shape = vec![count, 1, 1];
        shape[2 - at] = samples_of_bins[at];
        let place = of.reshape(&format!("{part}/axis"), place, &shape)?;
        axes.push(ImageAxis::of(of, part, place, size)?);
    }
    let [x_axis, y_axis] = &axes[..] else { return Ok(None) };
    #[expect(clippy::cast_precision_loss, reason = "no image has 2^53 pixels")]
    let pixels = of.number(ElementKind::Int32, (height * width) as f64)?;
    let images = of.cast("images/type", images, ElementKind::Int32)?;
    let samples = of.node("samples", "Mul", &[images, pixels], &[])?;
    let samples = of.reshape("samples/axis", samples, &[count, 1, 1])?;
    let sum = corner_sum(of, table, [x_axis, y_axis], samples, &LINEAR)?;
    let parts = [count, bins[1], points, bins[0], points, *channels];
    let apart = of.reshape("bins", sum, &parts)?;
    let op = if of.attributes.text("mode")? == Some("max") { "ReduceMax" } else { "ReduceMean" };
    let inner = of.ints(vec![2, 4])?;
    let reduced =
        of.node("reduced", op, &[apart, inner], &[("keepdims", AttributeValue::Int(0))])?;
    let y = of.transpose("back", reduced, &[0, 3, 1, 2])?;
    only(y)
}

/// Points of a grid, as products of their coordinates with a matrix of each sample.
fn affine_grid(of: &mut NodeComposition) -> Composed {
    let x = of.input(0)?;
    let size = of.input(1)?;
    let sizes = of.known_sizes(size);
    let sizes = sizes.ok_or_else(|| of.error("its size is not constant, or below zero"))?;
    let ([batch, _, fields @ ..], [_, axes, columns]) = (&sizes[..], &of.dims(x)[..]) else {
        return Err(of.error("its size does not fit its matrices"));
    };
    let count = fields.iter().copied().fold(1, u64::saturating_mul);
    let points = of.table("points", of.element(x), vec![count, *columns])?;
    let turned = of.transpose("matrices", x, &[0, 2, 1])?;
    let made = of.node("product", "MatMul", &[points, turned], &[])?;
    let shape = [&[*batch], fields, &[*axes]].concat();
    let y = of.reshape("grid", made, &shape)?;
    only(y)
}
