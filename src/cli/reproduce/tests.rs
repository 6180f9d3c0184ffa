use super::published_figures::{FigureTolerance, PublishedFigureKind};
use super::*;
use tilescope_sim::error_bands::PublishedResiduals;
use tilescope_sim::specification::find_bundled_spec;

fn published() -> PublishedFigures {
    PublishedFigures::read().expect("the file is as the code expects it")
}

#[test]
fn every_figure_has_its_own_name_and_programs_of_bundled_specs() {
    let published = published();
    let (figures, programs) = (&published.figures, &published.programs);
    for (position, figure) in figures.iter().enumerate() {
        assert!(figures[..position].iter().all(|o| o.id != figure.id), "{}", figure.id);
        assert!(!figure.programs.is_empty(), "{}", figure.id);
    }
    for (name, program) in programs {
        assert!(find_bundled_spec(&program.spec).is_some(), "{name}: {}", program.spec);
        assert!(figures.iter().any(|figure| figure.programs.contains(name)), "{name}: unused");
    }
    for name in published.published_runs.keys() {
        assert!(figures.iter().any(|figure| figure.runs.contains(name)), "{name}: unused");
    }
}

/// A figure that claims nothing has no tolerance, and a tolerance that is not exact has a source.
#[test]
fn every_tolerance_has_a_source() {
    for figure in published().figures {
        let relative = matches!(figure.tolerance, FigureTolerance::Relative(_));
        assert_eq!(relative, figure.tolerance_from.is_some(), "{}", figure.id);
        let claims = figure.tolerance != FigureTolerance::None;
        assert_eq!(claims, figure.kind != PublishedFigureKind::Illustrated, "{}", figure.id);
        assert!(claims || figure.known_miss.is_none(), "{}: misses nothing", figure.id);
    }
}

#[test]
fn like_is_compared_with_like() {
    let published = published();
    let compared = compared(&published).expect("every program is like its published run");
    for figure in &compared {
        for pair in &figure.conditions {
            assert!(pair.conditions.len() >= 5, "{}: {pair:?}", figure.figure.id);
        }
    }
}

/// A program can violate every published condition.
#[test]
fn a_changed_condition_is_refused() {
    let published = published();
    for run in published.published_runs.keys() {
        for condition in ["framework", "task", "micro_batch", "gradient_accumulation", "replicas"] {
            let mut file: toml::Table = toml::from_str(PublishedFigures::TEXT).expect("TOML");
            let said = &mut file["published_runs"][run][condition];
            let changed = match &*said {
                toml::Value::Integer(count) => toml::Value::Integer(count + 1),
                toml::Value::String(word) if word == "any" || word == "not_said" => continue,
                _ if condition == "task" => "fine-tuning".into(),
                _ => "Poplar".into(),
            };
            *said = changed;
            let changed: PublishedFigures = file.try_into().expect("still a list of figures");
            let error = compared(&changed).err().map(|error| error.to_string());
            let error = error.unwrap_or_else(|| panic!("{run}: {condition} does not matter"));
            assert!(error.contains("are not comparable"), "{error}");
            assert!(error.contains(run.as_str()), "{error}");
        }
    }
}

/// No publication ran a program on a changed machine.
#[test]
fn a_changed_machine_is_refused() {
    let mut changed = published();
    let (name, program) = changed.programs.first_key_value().expect("a program");
    let (name, mut program) = (name.clone(), program.clone());
    program.overrides.push("target.machine.exchange_bytes_per_cycle=16".to_owned());
    changed.programs.insert(name.clone(), program);
    let error = compared(&changed).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("are not comparable"), "{error}");
    assert!(error.contains(&name) && error.contains("exchange 16 B/cycle"), "{error}");
}

/// Rates of packs are not compared with rates of sequences.
#[test]
fn rates_of_other_items_are_refused() {
    let text = PublishedFigures::TEXT.replace("sequences_per_second", "samples_per_second");
    let changed: PublishedFigures = toml::from_str(&text).expect("a list of figures");
    let error = compared(&changed).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("items is sequences in one and packs in the other"), "{error}");
}

#[test]
fn a_miss_is_a_miss() {
    assert_eq!(FigureTolerance::Relative(0.1).holds(100.0, 109.0), Some(true));
    assert_eq!(FigureTolerance::Relative(0.1).holds(100.0, 111.0), Some(false));
    assert_eq!(FigureTolerance::Exact.holds(9.0, 8.0), Some(false));
    assert_eq!(FigureTolerance::None.holds(1.0, 5.0), None);
}

#[test]
fn a_known_miss_that_passes_is_reported() {
    let mut figure = published().figures.remove(0);
    figure.published = 10.0;
    figure.tolerance = FigureTolerance::Exact;
    figure.known_miss = Some("closed".to_string());
    assert_eq!(figure.verdict(11.0, true), FigureVerdict::KnownMiss("closed"));
    assert_eq!(figure.verdict(10.0, true), FigureVerdict::PassListedAsMiss);
    figure.known_miss = None;
    assert_eq!(figure.verdict(11.0, true), FigureVerdict::Miss);
    assert_eq!(figure.verdict(10.0, false), FigureVerdict::Miss);
    assert_eq!(figure.verdict(10.0, true), FigureVerdict::Pass);
}

/// The list of known misses equals the misses of the simulation, for all programs that are
/// simulated quickly; the command checks the others.
#[test]
fn known_misses_are_the_misses() {
    let published = published();
    let small = ["mnist_pipeline", "prearrange", "data_loading", "offload"];
    let mut compared = compared(&published).expect("like with like");
    let is_small = |name: &String| small.contains(&published.programs[name].spec.as_str());
    compared.retain(|compared| compared.figure.programs.iter().all(is_small));
    let mut simulated = BTreeMap::new();
    for name in compared.iter().flat_map(|compared| &compared.figure.programs) {
        if !simulated.contains_key(name) {
            let program = SimulatedProgram::new(&published.programs[name]).expect("simulates");
            simulated.insert(name.clone(), program);
        }
    }
    for compared in &compared {
        let row = row(compared, &simulated).expect("shows the figure");
        if let Some(residual) = &row.residual {
            let kept = PublishedResiduals::TEXT.lines().any(|line| line == residual.line);
            assert!(kept, "published.csv of error_bands is stale: {}", residual.line);
        }
        let is_miss = matches!(row.verdict, FigureVerdict::Miss | FigureVerdict::PassListedAsMiss);
        assert!(!is_miss, "{}: {} against {}", row.id, row.simulated, row.published);
    }
}
