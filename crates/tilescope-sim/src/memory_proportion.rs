//! `available_memory_proportion = "auto"`: the proportion with which the program is fastest and
//! fits.
//!
//! The expected cycles of single products do not decide speed or size. With other plans, tensors
//! have other layouts, stages wait for each other, and temporaries share memory with everything
//! that is live at the same time. The search therefore compiles and runs whole programs.

use crate::compile::{CompileError, CompiledProgram, ProgramExtent};
use crate::run::{length_of_run, shortened};
use crate::specification::{Proportion, Spec};
use rayon::prelude::*;
use std::borrow::Cow;
use tilescope_report::units::Cycles;

/// The shares that are tried, in percent: from poplibs' default through those of published programs
/// down to a share that leaves almost no memory for temporaries.
const TRIED_PERCENT: [u32; 10] = [60, 40, 30, 25, 20, 15, 10, 8, 5, 3];

/// Returns the spec with the proportion that was found, if the spec leaves it open: the one with
/// the shortest run among those that fit, and the smallest of equally fast ones. If none fits, the
/// result is the one whose fullest tile needs the least memory.
///
/// `compile` makes the program of a spec with a fixed proportion.
///
/// # Errors
/// Returns the errors of `compile`.
pub(crate) fn with_found(
    spec: &Spec,
    compile: impl Fn(&Spec, ProgramExtent) -> Result<CompiledProgram, CompileError> + Sync,
) -> Result<Cow<'_, Spec>, CompileError> {
    if spec.options.library.available_memory_proportion != Proportion::Auto {
        return Ok(Cow::Borrowed(spec));
    }
    let short = shortened(spec);
    let measured = short.as_ref().unwrap_or(spec);
    let tried: Result<Vec<(Cycles, u32)>, CompileError> = TRIED_PERCENT
        .par_iter()
        .map(|percent| {
            let spec = with_percent(measured, *percent);
            Ok((length_of_run(&compile(&spec, ProgramExtent::Run)?, &spec), *percent))
        })
        .collect();
    let mut tried = tried?;
    tried.sort_unstable();
    let mut fullest_tiles = Vec::new();
    for (_, percent) in tried {
        let spec = with_percent(spec, percent);
        let program = compile(&spec, ProgramExtent::Memory)?;
        if program.tiles_out_of_memory() == 0 {
            return Ok(Cow::Owned(spec));
        }
        fullest_tiles.push((program.fullest_tile(), percent));
    }
    let smallest = fullest_tiles.into_iter().min().expect("several are tried");
    Ok(Cow::Owned(with_percent(spec, smallest.1)))
}

fn with_percent(spec: &Spec, percent: u32) -> Spec {
    let mut spec = spec.clone();
    spec.options.library.available_memory_proportion = Proportion::found(percent);
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Simulation;
    use crate::specification::SpecSource;
    use tilescope_report::units::Bytes;

    fn spec(sizes: &str, more: &[String]) -> Spec {
        let sizes = sizes.split(' ').map(str::to_owned);
        let overrides: Vec<String> = sizes.chain(more.iter().cloned()).collect();
        let source = SpecSource::find("offload", &overrides).expect("a bundled spec");
        Spec::build(&source).expect("valid")
    }

    /// The length of the run if the program fits, and the bytes that its fullest tile needs.
    fn figures(spec: &Spec) -> (Option<Cycles>, Bytes) {
        let figures = Simulation::compile(spec, u64::MAX).expect("compiles").figures();
        (figures.cycles, figures.fullest_tile)
    }

    /// The proportion found is as fast as the fastest that fits. If none fits, its fullest tile
    /// needs no more than that of any other.
    #[test]
    fn the_found_proportion_is_the_fastest_that_fits_or_the_smallest() {
        let mut all_fit = 0;
        let mut some_fit = 0;
        let mut none_fits = 0;
        for sizes in [
            "model.width=515 model.layers=1 model.batch_size=33",
            "model.width=517 model.layers=2 model.batch_size=129",
            "model.width=1021 model.layers=1 model.batch_size=129",
        ] {
            let machine = ["target.machine.bytes_per_tile=65536", "options.device_iterations=1"];
            let machine = machine.map(str::to_owned);
            let proportion = |value: String| {
                let key = format!("options.available_memory_proportion={value}");
                spec(sizes, &[&machine[..], &[key]].concat())
            };
            let fixed = TRIED_PERCENT
                .map(|percent| figures(&proportion((f64::from(percent) / 100.0).to_string())));
            let (cycles, fullest_tile) = figures(&proportion("auto".to_owned()));
            match fixed.iter().filter_map(|figures| figures.0).min() {
                Some(fastest) => assert_eq!(cycles, Some(fastest), "{sizes}"),
                None => {
                    assert_eq!(Some(fullest_tile), fixed.iter().map(|figures| figures.1).min());
                    none_fits += 1;
                }
            }
            let fit = fixed.iter().filter(|figures| figures.0.is_some()).count();
            all_fit += usize::from(fit == fixed.len());
            some_fit += usize::from((1..fixed.len()).contains(&fit));
        }
        assert!(all_fit > 0 && some_fit > 0 && none_fits > 0, "{all_fit} {some_fit} {none_fits}");
    }

    #[test]
    fn a_given_proportion_stays() {
        let given = spec("model.layers=2", &["options.available_memory_proportion=0.6".to_owned()]);
        let found = with_found(&given, |_, _| panic!("nothing is compiled")).expect("is given");
        assert!(matches!(found, Cow::Borrowed(_)));
    }
}
