//! Profiles of other tools with measured tiles: opened like reports and converted to files, without
//! loss.

use crate::common::{stderr, stdout, tilescope};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::{TempDir, tempdir};
use tilescope_analysis::exchange_code::exchange_cycles;
use tilescope_analysis::insights::insights;
use tilescope_analysis::tables::{all, named};
use tilescope_analysis::tile_samples::{SampleFilter, SampleGrouping, SampleKey, sample_groups};
use tilescope_fixtures::ipu_stack_profile::*;
use tilescope_report::units::*;
use tilescope_report::*;
use tilescope_test_tiers::cases;

const EVERY_STEP: std::ops::Range<StepId> = StepId(0)..StepId(u64::MAX);

/// A profile as a file in a directory of its own.
fn file(bytes: &[u8]) -> (TempDir, PathBuf) {
    let directory = tempdir().unwrap();
    let path = directory.path().join("profile.capnp");
    fs::write(&path, bytes).unwrap();
    (directory, path)
}

fn open(profile: &IpuStackProfile) -> (TempDir, Report) {
    let (directory, path) = file(&profile.bytes());
    let report = Report::open_with_cache(path, None).unwrap();
    (directory, report)
}

/// Samples of a report in the order of the file.
fn samples(report: &Report) -> Vec<(StepId, TileSample)> {
    let mut samples = Vec::new();
    report.visit_tile_samples(EVERY_STEP, |step, sample| samples.push((step, sample))).unwrap();
    samples
}

/// Cycles of all samples by the values of a grouping, from the report.
fn work(report: &Report, by: &SampleGrouping) -> BTreeMap<String, u64> {
    let groups = sample_groups(report, by, &SampleFilter::new()).unwrap();
    groups.into_iter().map(|group| (group.key.text(), group.work.0)).collect()
}

/// The same from the profile.
fn own_work(
    profile: &IpuStackProfile,
    key: impl Fn(u32, &ProfileSample) -> String,
) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (tile, samples) in &profile.tiles {
        for sample in samples {
            let length = sample.end.wrapping_sub(sample.start);
            *sums.entry(key(*tile, sample)).or_default() += u64::from(length);
        }
    }
    sums
}

/// A profile with all difficulties: wraps, epochs, idle tiles, tiles that miss steps, different
/// operations at the same time, and names that are not UTF-8 beside others.
fn hard_profile() -> IpuStackProfile {
    let mut profile = IpuStackProfile::layers(24, 7);
    for (tile, samples) in &mut profile.tiles {
        let length = samples.last().map_or(0, |sample| sample.end) + 500;
        let again: Vec<ProfileSample> = samples
            .iter()
            .map(|sample| ProfileSample {
                epoch: 1,
                start: sample.start + length.max(20_000),
                end: sample.end + length.max(20_000),
                ..sample.clone()
            })
            .collect();
        samples.extend(again);
        if *tile > 1_000 {
            samples.retain(|sample| sample.phase != 3);
        }
        for sample in samples.iter_mut() {
            if *tile < 300 && sample.phase == 5 {
                (sample.kind, sample.kernel) = (IDLE, String::new());
            }
            if *tile < 100 && sample.phase == 7 {
                sample.operation = "other/</script>\u{7}".to_owned();
            }
            sample.start = sample.start.wrapping_add(u32::MAX - 9_000);
            sample.end = sample.end.wrapping_add(u32::MAX - 9_000);
        }
    }
    profile
}

#[test]
fn every_sample_is_kept() {
    for profile in [IpuStackProfile::layers(5, 4), hard_profile()] {
        for segment_words in [1, 7, 300, 1 << 20] {
            let profile = IpuStackProfile { segment_words, ..profile.clone() };
            let (_directory, report) = open(&profile);
            let kept = samples(&report);
            let own: usize = profile.tiles.iter().map(|(_, samples)| samples.len()).sum();
            assert_eq!((kept.len(), report.tile_sample_count().unwrap()), (own, own as u64));
            let labels = report.sample_labels().unwrap();
            for (tile, samples) in &profile.tiles {
                let of_tile = kept.iter().filter(|(_, sample)| sample.tile == TileId(*tile));
                let mut of_tile: Vec<&TileSample> = of_tile.map(|(_, sample)| sample).collect();
                of_tile.sort_by_key(|sample| sample.cycles.start);
                for (kept, own) in of_tile.iter().zip(samples) {
                    let label = &labels[kept.label as usize];
                    let names = (label.operation.as_str(), label.kernel.as_str());
                    assert_eq!(names, (own.operation.as_str(), own.kernel.as_str()));
                    let mut metadata = own.metadata.clone();
                    metadata.sort();
                    assert_eq!(label.metadata, metadata);
                    let numbers = (kept.phase, kept.epoch, kept.local_index);
                    assert_eq!(numbers, (own.phase, own.epoch, own.local_index));
                    let length = u64::from(own.end.wrapping_sub(own.start));
                    assert_eq!(kept.cycles.length(), Cycles(length));
                    assert_eq!(kept.exchange_cycles.0, u64::from(own.exchange_cycles));
                    let numbered = kept.activities.iter().map(|of| {
                        let kind =
                            ExchangeActivityKind::ALL.iter().position(|kind| *kind == of.kind);
                        (kind.unwrap() as u16, of.start, of.end)
                    });
                    assert_eq!(numbered.collect::<Vec<_>>(), own.activities);
                }
            }
            assert_eq!(report.verify().unwrap(), []);
        }
    }
}

#[test]
fn sums_by_kind_tile_and_operation_are_those_of_the_profile() {
    let profile = hard_profile();
    let (_directory, report) = open(&profile);
    let kinds = SampleKind::ALL.map(SampleKind::name);
    let of_kind = own_work(&profile, |_, sample| kinds[sample.kind as usize].to_owned());
    assert_eq!(work(&report, &SampleGrouping::Kind), of_kind);
    assert_eq!(of_kind.len(), 4);
    assert_eq!(
        work(&report, &SampleGrouping::Operation),
        own_work(&profile, |_, sample| sample.operation.clone())
    );
    assert_eq!(
        work(&report, &SampleGrouping::Tile),
        own_work(&profile, |tile, _| tile.to_string())
    );
    assert_eq!(
        work(&report, &SampleGrouping::Kernel),
        own_work(&profile, |_, sample| sample.kernel.clone())
    );
    let rows = |_: u32, sample: &ProfileSample| {
        let found = sample.metadata.iter().find(|(name, _)| name == "M");
        found.map_or(String::new(), |(_, value)| value.clone())
    };
    assert_eq!(work(&report, &SampleGrouping::from_name("M")), own_work(&profile, rows));
    // The tables have the same values, and a filter keeps its part.
    for (name, by) in SampleGrouping::NAMED {
        let table = named("execution-trace", Some(&format!("samples-by-{name}"))).unwrap();
        let groups = sample_groups(&report, &by, &SampleFilter::new()).unwrap();
        assert_eq!((table.read)(&report).unwrap().rows.len(), groups.len(), "{name}");
    }
    let compute = vec![(SampleGrouping::Kind, "compute".to_owned())];
    let only = sample_groups(&report, &SampleGrouping::Kind, &compute).unwrap();
    let only: Vec<(SampleKey, u64)> = only.into_iter().map(|of| (of.key, of.work.0)).collect();
    assert_eq!(only, [(SampleKey::Text("compute".to_owned()), of_kind["compute"])]);
}

#[test]
fn steps_are_where_their_samples_are() {
    let profile = IpuStackProfile::layers(6, 3);
    let (_directory, report) = open(&profile);
    let ends = profile.tiles.iter().flat_map(|(_, samples)| samples).map(|sample| sample.end);
    let trace = report.trace().unwrap().unwrap();
    // If counters begin near 0, cycles are those that the tool shows.
    assert_eq!(trace.range().end, Cycles(ends.max().unwrap().into()));
    assert_eq!(report.step_count().unwrap(), 9);
    assert!(!report.has(ReportPart::StepBytes) && !report.has(ReportPart::TileMemory));
    let target = report.target().unwrap();
    assert_eq!((target.tiles_per_ipu, target.physical_numbers), (1472, true));
    let kinds: Vec<ProgramKind> =
        report.steps(EVERY_STEP, 10).unwrap().into_iter().map(|step| step.kind).collect();
    let layer = [ProgramKind::Sync, ProgramKind::DoExchange, ProgramKind::OnTileExecute];
    assert_eq!(kinds, layer.repeat(3));
    let names: Vec<String> =
        report.vertex_types().unwrap().iter().map(|kind| kind.name.clone()).collect();
    assert_eq!(names, ["gemm_f16_amp", "softmax_f16", "gelu_f16"]);
    for (program, set) in report.compute_sets().unwrap() {
        assert_eq!(set.cycles.tile_count(), 6, "{program:?}");
    }
}

#[test]
fn counters_wrap_and_may_have_other_origins() {
    let plain = IpuStackProfile::layers(6, 3);
    let expected: Vec<(StepId, CycleRange)> =
        samples(&open(&plain).1).into_iter().map(|(step, of)| (step, of.cycles)).collect();
    let first = expected.iter().map(|(_, cycles)| cycles.start).min().unwrap();
    for shifts in [[u32::MAX - 700; 6], [7, 4_000_000_000, 90_000, u32::MAX - 2_000, 3, 55]] {
        let mut moved = plain.clone();
        for ((_, samples), shift) in moved.tiles.iter_mut().zip(shifts) {
            for sample in samples {
                sample.start = sample.start.wrapping_add(shift);
                sample.end = sample.end.wrapping_add(shift);
            }
        }
        let (_directory, report) = open(&moved);
        let found: Vec<(StepId, CycleRange)> =
            samples(&report).into_iter().map(|(step, of)| (step, of.cycles)).collect();
        let origin = found.iter().map(|(_, cycles)| cycles.start).min().unwrap();
        let at = |cycles: &CycleRange, origin| (cycles.start - origin, cycles.end - origin);
        let places = |all: &[(StepId, CycleRange)], origin| -> Vec<_> {
            all.iter().map(|(step, cycles)| (*step, at(cycles, origin))).collect()
        };
        assert_eq!(places(&found, origin), places(&expected, first), "{shifts:?}");
        assert_eq!(report.verify().unwrap(), []);
    }
}

#[test]
fn exchanges_have_their_measured_arrivals_and_transfers() {
    let profile = IpuStackProfile::layers(6, 3);
    let (_directory, report) = open(&profile);
    let found = exchange_cycles(&report).unwrap();
    assert_eq!(found.rows.len(), 3);
    for row in &found.rows {
        let of_layer = |kind: u16| {
            let samples = profile
                .tiles
                .iter()
                .flat_map(|(tile, samples)| samples.iter().map(move |sample| (*tile, sample)));
            let own = samples.filter(move |(_, of)| of.kind == kind && of.operation == row.name);
            own.collect::<Vec<_>>()
        };
        let arrivals: Vec<(u32, u32)> =
            of_layer(SYNCHRONIZATION).iter().map(|(tile, of)| (of.start, *tile)).collect();
        let (first, last) = (arrivals.iter().min().unwrap().0, arrivals.iter().max().unwrap().0);
        let last_tile = arrivals.iter().find(|(start, _)| *start == last).unwrap().1;
        let end = of_layer(EXCHANGE).iter().map(|(_, of)| of.end).max().unwrap();
        let busy = |(_, of): &(u32, &ProfileSample)| {
            let sum = |kind| -> u32 {
                let own = of.activities.iter().filter(|activity| activity.0 == kind);
                own.map(|(_, start, end)| end - start).sum()
            };
            sum(0).max(sum(1))
        };
        let least = of_layer(EXCHANGE).iter().map(busy).max().unwrap();
        let run = row.run.unwrap();
        let known = run.arrivals.unwrap();
        assert_eq!(known.spread.0, u64::from(last - first));
        assert_eq!(known.last, Some(TileId(last_tile)));
        assert_eq!(run.mean_transfer().0, u64::from(end - last));
        assert_eq!(row.mean_least().map(|cycles| cycles.0), Some(least.into()));
    }
}

#[test]
fn every_command_accepts_a_profile_and_changes_no_file() {
    let (directory, path) = file(&IpuStackProfile::layers(8, 4).bytes());
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let (file, at) = (path.to_string_lossy().into_owned(), directory.path().to_string_lossy());
    let csv = tempdir().unwrap();
    let csv = csv.path().join("t.csv").to_string_lossy().into_owned();
    let table = ["--view", "execution-trace", "--format", "csv", "--table", "samples-by-kernel"];
    let export = [&["export", file.as_str()][..], &table[..], &["-o", csv.as_str()]].concat();
    let commands: [&[&str]; 9] = [
        &["summary", &file],
        &["summary", &at, "--json"],
        &["verify", &file],
        &["find", &file, "qkv"],
        &["compare", &file, &at],
        &["why", &file],
        &["insights", &file],
        &["samples", &at, "--by", "M", "--where", "kind=compute"],
        &export,
    ];
    for arguments in commands {
        let output = tilescope(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    }
    assert!(fs::read_to_string(&csv).unwrap().contains("gemm_f16_amp"));
    let names: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["profile.capnp"]);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    // An unknown name of samples is wrong usage, and a report without samples gives a message.
    let output = tilescope(&["samples", &file, "--by", "colour"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("kernel, operation"), "{}", stderr(&output));
}

#[test]
fn a_converted_profile_is_a_report_with_the_same_bytes_every_time() {
    let (_directory, path) = file(&hard_profile().bytes());
    let source = path.to_string_lossy().into_owned();
    let out = tempdir().unwrap();
    let written = |name: &str| {
        let place = out.path().join(name);
        let output = tilescope(&["convert", &source, "-o", &place.to_string_lossy()]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stdout(&output).contains("profile.pop"));
        let names: Vec<_> =
            fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["profile.pop"]);
        fs::read(place.join("profile.pop")).unwrap()
    };
    assert!(written("one") == written("two"), "conversions differ");
    let (kept, opened) = (
        Report::open(out.path().join("one")).unwrap(),
        Report::open_with_cache(&path, None).unwrap(),
    );
    assert_eq!(samples(&kept), samples(&opened));
    assert_eq!(opened.path(), path);
    for table in all() {
        assert_eq!((table.read)(&kept).unwrap(), (table.read)(&opened).unwrap(), "{}", table.name);
    }
    let output = tilescope(&["convert", &out.path().join("one").to_string_lossy()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("nothing to convert"), "{}", stderr(&output));
}

#[test]
fn converted_reports_are_kept_until_the_file_changes() {
    let (_directory, path) = file(&IpuStackProfile::layers(3, 2).bytes());
    let cache = tempdir().unwrap();
    let open = || Report::open_with_cache(&path, Some(cache.path().to_owned())).unwrap();
    let kept = || -> Vec<PathBuf> {
        let made = fs::read_dir(cache.path().join("converted")).unwrap();
        made.map(|entry| entry.unwrap().path()).collect()
    };
    assert_eq!(open().step_count().unwrap(), 6);
    let first = kept();
    assert_eq!(open().step_count().unwrap(), 6);
    assert_eq!((first.len(), kept()), (1, first.clone()));
    // A broken report is made again.
    fs::write(first[0].join("profile.pop"), "SQLite format 3").unwrap();
    assert_eq!(open().step_count().unwrap(), 6);
    fs::write(&path, IpuStackProfile::layers(3, 5).bytes()).unwrap();
    let later = SystemTime::now() + std::time::Duration::from_secs(5);
    fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
    assert_eq!(open().step_count().unwrap(), 15);
    assert_eq!(kept().len(), 2);
}

#[test]
fn bad_profiles_give_a_reason() {
    let good = IpuStackProfile::layers(3, 2);
    let bytes = good.bytes();
    let sample = |change: &dyn Fn(&mut ProfileSample)| {
        let mut profile = good.clone();
        change(&mut profile.tiles[1].1[2]);
        profile.bytes()
    };
    let twice =
        IpuStackProfile { tiles: [&good.tiles[..], &good.tiles[..1]].concat(), ..good.clone() };
    let far = IpuStackProfile { tiles: vec![(4_000_000, good.tiles[0].1.clone())], ..good.clone() };
    let cases: [(Vec<u8>, &str); 8] = [
        (bytes[..bytes.len() - 16].to_vec(), "its header promises"),
        ([&bytes[..], &[0; 8]].concat(), "its header promises"),
        (IpuStackProfile { version: 0, ..good.clone() }.bytes(), "schema version is 0"),
        (sample(&|of| of.kind = 9), "kind 9; kinds are 0 to 3"),
        (sample(&|of| of.activities = vec![(3, 0, 1)]), "kind 3; kinds are 0 to 2"),
        (twice.bytes(), "is listed twice"),
        (far.bytes(), "beyond the last tile"),
        (vec![255; 64], "segments, more than any writer creates"),
    ];
    for (bytes, words) in cases {
        let (_directory, path) = file(&bytes);
        let error = Report::open_with_cache(&path, None).err().expect(words).to_string();
        assert!(error.contains(words) && error.contains("profile.capnp"), "{error}");
    }
    let newer = IpuStackProfile { version: 6, ..good };
    assert!(open(&newer).1.notes().unwrap().iter().any(|note| note.contains("newer than 5")));
    let (_directory, empty) = open(&IpuStackProfile::default());
    assert_eq!((empty.step_count().unwrap(), empty.verify().unwrap()), (0, vec![]));
}

/// Opens bytes as a profile and uses the result: an answer or an error, and no panic.
fn look_at(bytes: &[u8], directory: &Path) {
    let path = directory.join("profile.capnp");
    fs::write(&path, bytes).unwrap();
    if let Ok(report) = Report::open_with_cache(&path, None) {
        assert_eq!(report.verify().unwrap(), []);
        for table in all().filter(|table| table.view == "execution-trace") {
            let _ = (table.read)(&report);
        }
    }
}

/// Profiles with some changed words, including pointers, counts and cycles.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        any::<u64>(),
        Just(0),
        Just(u64::MAX),
        (0u64..1 << 16).prop_map(|small| small << 32 | 0xffff_fffc),
    ];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), word), 1..4);
    let bits = prop::collection::vec((any::<prop::sample::Index>(), 0..8u32), 0..4);
    (0..3usize, changes, bits, any::<prop::sample::Index>(), 0..8u8).prop_map(
        |(size, words, bits, cut, how)| {
            let profile =
                IpuStackProfile { segment_words: 40 << size, ..IpuStackProfile::layers(3, 2) };
            let mut bytes = profile.bytes();
            for (at, word) in words {
                let at = at.index(bytes.len() / 8) * 8;
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
            for (at, bit) in bits {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }
            if how == 0 {
                bytes.truncate(cut.index(bytes.len()));
            }
            bytes
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(2_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_a_report_or_an_error(bytes in mutated()) {
        let directory = tempdir().unwrap();
        look_at(&bytes, directory.path());
    }
}

/// Tiles that were not measured are not taken for idle.
#[test]
fn insights_are_about_measured_tiles() {
    let (_directory, report) = open(&IpuStackProfile::layers(10, 4));
    for finding in insights(&report, NumberFormat::default()).unwrap() {
        assert_ne!(finding.rule, "unused_tiles", "{}", finding.sentence);
        // The four measured tiles work alike, four of 1,472 would be 0.3 %.
        assert!(!finding.sentence.contains(" 0.3 %"), "{}", finding.sentence);
    }
}

#[test]
fn every_reader_is_in_the_document() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/profiles.md");
    let text = fs::read_to_string(document).unwrap();
    for reader in PROFILE_READERS {
        assert!(text.contains(reader.tool) && text.contains(reader.file_name), "{}", reader.tool);
    }
}

#[test]
fn tiles_of_several_ipus_are_on_their_ipus() {
    let mut profile = IpuStackProfile::layers(10, 4);
    for (at, (tile, _)) in profile.tiles.iter_mut().enumerate() {
        *tile = 1472 * (at as u32 % 3) + at as u32;
    }
    let (_directory, report) = open(&profile);
    assert_eq!(report.target().unwrap().ipus_per_replica, 3);
    assert_eq!(report.verify().unwrap(), []);
    let trace = report.trace().unwrap().unwrap();
    assert_eq!((trace.lanes().len(), trace.bars()), (3, 3 * 12));
    let of_kind = |kind| work(&report, &SampleGrouping::Kind)[kind];
    let own = own_work(&profile, |_, sample| sample.kind.to_string());
    assert_eq!((of_kind("exchange"), of_kind("compute")), (own["0"], own["1"]));
}
