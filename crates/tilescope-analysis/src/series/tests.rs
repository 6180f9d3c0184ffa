//! Change points of generated series, and reports in directories.

use super::*;
use proptest::prelude::*;
use std::fs;
use tilescope_test_tiers::cases;

/// Runs with a lasting change of values.
fn changes(values: &[f64]) -> Vec<usize> {
    let values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
    trend(&values, DEFAULT_THRESHOLD).changes.iter().map(|change| change.run).collect()
}

/// The expected result without any change.
const NONE: [usize; 0] = [];

/// Pseudo-random numbers around 0 with an approximately normal distribution, the same for each
/// seed.
fn noise(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut uniform = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..count).map(|_| (0..12).map(|_| uniform()).sum::<f64>() - 6.0).collect()
}

fn steps(levels: &[(f64, usize)]) -> Vec<f64> {
    levels.iter().flat_map(|(level, count)| std::iter::repeat_n(*level, *count)).collect()
}

#[test]
fn steps_are_found_where_they_are() {
    assert_eq!(changes(&steps(&[(100.0, 10), (105.0, 10)])), [10]);
    assert_eq!(changes(&steps(&[(100.0, 5), (102.0, 5), (104.0, 5), (106.0, 5)])), [5, 10, 15]);
    // Up and back, for two runs.
    assert_eq!(changes(&steps(&[(100.0, 30), (101.5, 2), (100.0, 30)])), [30, 32]);
    assert_eq!(changes(&steps(&[(1e12, 50), (0.9e12, 50)])), [50]);
    assert_eq!(changes(&steps(&[(0.0, 4), (7.0, 4)])), [4]);
    // Below the threshold.
    assert_eq!(changes(&steps(&[(100.0, 10), (100.9, 10)])), NONE);
}

#[test]
fn a_change_at_the_newest_run_is_reported_unconfirmed() {
    let values: Vec<Option<f64>> = steps(&[(100.0, 9), (110.0, 1)]).into_iter().map(Some).collect();
    let found = trend(&values, DEFAULT_THRESHOLD);
    let [change] = &found.changes[..] else { panic!("{found:?}") };
    assert_eq!((change.run, change.previous, change.confirmed), (9, 8, false));
    assert_eq!((change.before, change.after), (100.0, 110.0));
    assert!(change.share.is_some_and(|share| (share - 0.1).abs() < 1e-12));
    let values: Vec<Option<f64>> = steps(&[(100.0, 9), (110.0, 2)]).into_iter().map(Some).collect();
    assert!(trend(&values, DEFAULT_THRESHOLD).changes[0].confirmed);
    assert_eq!(changes(&[100.0, 90.0]), [1]);
}

#[test]
fn single_outliers_are_not_changes() {
    let mut values = steps(&[(100.0, 20)]);
    values[7] = 150.0;
    let of: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
    let found = trend(&of, DEFAULT_THRESHOLD);
    assert_eq!((found.changes.len(), found.outliers), (0, vec![7]));
    // An outlier beside a step does not move the step.
    let mut values = steps(&[(100.0, 10), (120.0, 10)]);
    values[4] = 300.0;
    values[15] = 1.0;
    assert_eq!(changes(&values), [10]);
}

#[test]
fn steady_drifts_are_not_changes() {
    for slope in [0.001, 0.003, 0.01, 0.05] {
        let values: Vec<f64> = (0..40).map(|at| 100.0 * (1.0 + slope * f64::from(at))).collect();
        assert_eq!(changes(&values), NONE, "{slope}");
        let of: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
        let drifts = trend(&of, DEFAULT_THRESHOLD).drifts;
        let [drift] = &drifts[..] else { panic!("{slope}: {drifts:?}") };
        assert_eq!((drift.first, drift.last), (0, 39), "{slope}");
        assert!(drift.share_per_run > 0.0 && drift.share_per_run <= slope * 1.1, "{drift:?}");
    }
}

#[test]
fn noise_alone_is_seldom_a_change_and_hides_no_step() {
    let mut alarms = 0;
    for seed in 0..100 {
        let noise = noise(60, seed);
        let level: Vec<f64> = noise.iter().map(|of| 100.0 + 2.0 * of).collect();
        alarms += usize::from(!changes(&level).is_empty());
        // A step of five times the noise, in the middle.
        let step = level.iter().enumerate().map(|(at, of)| of + if at < 30 { 0.0 } else { 10.0 });
        let found = changes(&step.collect::<Vec<_>>());
        assert!(found.iter().any(|at| (29..=31).contains(at)), "seed {seed}: {found:?}");
        // A drift smaller than the step remains a drift.
        let drift = level.iter().enumerate().map(|(at, of)| of + 0.5 * at as f64);
        alarms += usize::from(!changes(&drift.collect::<Vec<_>>()).is_empty());
    }
    assert!(alarms <= 10, "{alarms} of 200");
}

#[test]
fn runs_without_the_figure_are_skipped() {
    let values = [Some(1.0), None, Some(1.0), Some(f64::NAN), Some(2.0), Some(2.0)];
    let found = trend(&values, DEFAULT_THRESHOLD);
    assert_eq!((found.changes[0].previous, found.changes[0].run), (2, 4));
    assert_eq!(trend(&[None, Some(3.0), None], DEFAULT_THRESHOLD), FigureTrend::default());
    assert_eq!(trend(&[], DEFAULT_THRESHOLD), FigureTrend::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(250)))]
    #[test]
    fn constant_values_have_no_trend(value in any::<f64>(), count in 0_usize..200) {
        prop_assert_eq!(trend(&vec![Some(value); count], 0.0), FigureTrend::default());
    }

    #[test]
    fn changes_are_ordered_large_enough_and_independent_of_the_unit(
        values in proptest::collection::vec(0.5_f64..2.0, 2..80),
        threshold in 0.0_f64..0.5,
    ) {
        let series_of = |factor: f64| {
            let values: Vec<Option<f64>> = values.iter().map(|of| Some(of * factor)).collect();
            trend(&values, threshold)
        };
        let found = series_of(1.0);
        prop_assert!(found.changes.windows(2).all(|pair| pair[0].run < pair[1].run));
        for change in &found.changes {
            prop_assert!(0 < change.run && change.run < values.len());
            prop_assert_eq!(change.previous + 1, change.run);
        }
        let runs = |of: &FigureTrend| of.changes.iter().map(|of| of.run).collect::<Vec<_>>();
        // Powers of two are exact.
        prop_assert_eq!(runs(&found).len(), runs(&series_of(1024.0)).len());
    }

    #[test]
    fn names_sort_with_numbers_by_value(a in "[a-z0-9]{0,6}", b in "[a-z0-9]{0,6}", c in "[a-z0-9]{0,6}") {
        prop_assert_eq!(natural_order(&a, &b), natural_order(&b, &a).reverse());
        if natural_order(&a, &b).is_le() && natural_order(&b, &c).is_le() {
            prop_assert!(natural_order(&a, &c).is_le(), "{} {} {}", a, b, c);
        }
        prop_assert_eq!(natural_order(&a, &b).is_eq(), a == b);
    }
}

#[test]
fn numbers_in_names_sort_by_value() {
    let mut names = vec!["v10", "v2", "v2.10", "v2.9", "v02", "a", "", "v"];
    names.sort_by(|a, b| natural_order(a, b));
    assert_eq!(names, ["", "a", "v", "v02", "v2", "v2.9", "v2.10", "v10"]);
}

#[test]
fn reports_are_found_up_to_two_directories_below() {
    let place = tempfile::tempdir().expect("temporary directory");
    let path = |name: &str| place.path().join(name);
    for name in ["v10", "v9/training", "v9/x/y"] {
        fs::create_dir_all(path(name)).expect("makes a directory");
    }
    let files =
        ["v10/profile.pop", "v9/training/profile.pop", "v9/x/y/profile.pop", "b.pop", "notes.txt"];
    files.iter().for_each(|name| fs::write(path(name), "").expect("writes"));
    let names = |found: &[SeriesSource]| -> Vec<String> {
        found.iter().map(|source| source.name.clone()).collect()
    };
    let found = find_reports(place.path(), true).expect("has some");
    let training = std::path::Path::new("v9").join("training").display().to_string();
    assert_eq!(names(&found), ["b".to_owned(), training, "v10".to_owned()]);
    // The same report twice becomes two runs.
    let mut twice = [found[0].clone(), found[0].clone()];
    arrange(&mut twice, SeriesOrder::Given).expect("are few");
    assert_eq!(names(&twice), ["b", "b (2)"]);
    // A directory that is itself a report.
    assert_eq!(names(&find_reports(&path("v10"), true).expect("is one")), ["v10"]);
    let error = find_reports(&path("v9/x/y"), true).map(|found| names(&found));
    assert_eq!(error.ok(), Some(vec!["y".to_owned()]));
    fs::create_dir(path("empty")).expect("makes a directory");
    let words = find_reports(&path("empty"), true).expect_err("is empty").to_string();
    assert!(words.contains("it is empty"), "{words}");
    assert!(find_reports(&path("nowhere"), true).is_err());
}

#[test]
fn more_reports_than_a_series_has_are_refused() {
    let source =
        SeriesSource { name: String::new(), path: std::path::PathBuf::new(), modified: None };
    let mut many = vec![source; MAX_REPORTS + 1];
    let error = arrange(&mut many, SeriesOrder::Name).expect_err("are too many");
    assert!(error.to_string().contains("more than 10000 reports"), "{error}");
}

#[test]
fn figures_are_chosen_by_their_paths() {
    let choice = |names: &[&str]| FigureChoice::parse(names.iter().copied());
    let chosen = choice(&["cycles", "memory.by_category.*"]).expect("are figures");
    assert!(chosen.has("execution.total_cycles") && chosen.has("memory.by_category.vertexCode"));
    assert!(!chosen.has("execution.seconds") && !chosen.has("memory.by_category"));
    assert!(choice(&["execution.ipus.*.proportions.*"]).is_ok());
    for wrong in ["cylces", "memory.*.*.*", "execution.ipus.*.step", ""] {
        assert!(choice(&[wrong]).is_err(), "{wrong}");
    }
    let error = choice(&["execution.totl_cycles"]).expect_err("is none").to_string();
    assert!(error.contains("did you mean \"execution.total_cycles\"?"), "{error}");
}
