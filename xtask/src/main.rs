//! Measures the house style of the code and the times of its tests, so that the rules of tilescope
//! can be checked.
//!
//! ```text
//! cargo xtask style [--list] [--json] [--check] [--sample SEED] [DIR…]
//! cargo xtask test-times [--limit SECONDS] [--top N] [-- ARGUMENTS OF CARGO TEST]
//! cargo xtask map [CRATE]
//! cargo xtask structure
//! cargo xtask notices
//! cargo xtask fuzz [--minutes N] [--seed N]
//! ```
//!
//! `test_times.rs`, `map.rs`, `structure.rs`, `notices.rs` and `fuzz.rs` describe the other
//! commands; the rest of this page describes the first.
//!
//! Without DIR: `src` and `crates/*/src` of this workspace. Always exits with 0, unless `--check`
//! is given and a metric is worse than its ceiling or a file could not be parsed (1), or the
//! command line is wrong (2). A metric that misses its target has a ceiling: the worst value that
//! passes until the target is met. The table `LIMITS` in `metrics.rs` holds targets and ceilings.
//!
//! `--list` prints the places behind each figure. `--sample SEED` prints texts and functions drawn
//! at random instead of figures; `sample.rs` describes it.
//!
//! # What is counted
//!
//! *Product code* is every line that is not a test: not below `#[test]`, `#[cfg(test)]` or
//! `#[cfg(all(test, …))]`, not in a file declared as `#[cfg(test)] mod name;` or below it, not in a
//! crate that only tests use (`TEST_CRATES` in `source.rs`). `#[cfg(any(test, …))]` is product
//! code. All figures are of product code; 1 kloc is 1,000 of its lines, blank ones and comments
//! too.
//!
//! | row | how | target |
//! |---|---|---|
//! | type definitions sharing their name | structs, enums, unions, traits and type aliases, also private ones and those inside functions, not associated types; those whose name is defined more than once anywhere, of all | < 10 % |
//! | type names of a single word | the same definitions; those with one camel-case hump (`Made`; `DType` and `IpuId` have two, `IPU` and `Conv2d` one), of all | < 35 % |
//! | inline comments | lines on which a `//` comment begins, alone or after code, that has a letter or digit; not `///`, `//!`, `/* */`, `// ----`; of all lines, and of the folders in `HARD_PARTS` | > 2 % in each hard part |
//! | `Result<_, String>` | paths with a segment `Result` whose second type ends in `String`, in types and expressions | < 0.2 /kloc |
//! | doc comments of three words or fewer | `///` lines that follow each other are one doc comment, on items, fields, variants and in macro calls; a word has a letter or digit | < 4 % |
//! | assertions | `assert!`, `assert_eq!`, `assert_ne!` and their `debug_` forms, also inside other macros | > 0.7 /kloc |
//! | doc comments from What, Which, Whether | doc comments, also `//!`, whose first word is one of these, of all | <= 1.5 % |
//! | closures bound to nouns | `let name = \|…\| …` whose name does not begin with a word of `VERBS` in `dialect.rs`, or of `VERBS_WITH_OBJECT` and another word | <= 2 /kloc |
//! | `let (a, b) = (x, y)` | tuples on both sides | <= 0.5 /kloc |
//! | matches on a boolean | `match` with an arm `true` or `false` | 0 |
//! | `.then(…)` and `.then_some(…)` | calls of `then_some`, and of `then` with a closure | <= 0.5 /kloc |
//! | odd phrases | `PHRASES` in `dialect.rs`, in comments, doc comments and strings, also across lines | 0 |
//! | public items without docs | `pub` (not `pub(…)`) structs, enums, unions, traits, aliases, functions, methods, constants, statics; not fields, variants, modules, `use`; `#[doc(hidden)]` counts as docs | no target |
//! | gui: arrows up between floors | pairs of a module and a folder that `FLOORS` in `imports.rs` does not let it import. A folder with a rule may not import a module without one | 0 |
//! | modules in the largest circle | top-level modules of `gui`, `sim` and others that import each other, directly or not; all circles are printed, with `--list` the imports that close them | 0 in `sim` |
//!
//! Imports are `use` items and written paths, also inside macro calls, that begin with `crate`,
//! `self`, `super`, a crate of the project or a child module. They are followed through `use` and
//! `pub use` to the module that defines the name; glob imports end at the module before the star.
//! Items of `lib.rs` or `mod.rs` of a crate or layer belong to no folder and are not counted.
//! Visibilities (`pub(super)`) and links in docs are not imports.
//!
//! A part or crate that does not exist, or `gui` without floors, shows `-` and fails `--check`:
//! when a folder is renamed, it must be renamed here too (`HARD_PARTS`, `WINDOW`, `SIMULATOR` in
//! `metrics.rs`).
//!
//! Both layouts have one tree of modules: `src/sim/planner` and `crates/tilescope-sim/src/planner`
//! are `sim::planner`.
//!
//! Types and functions that only exist after the expansion of a macro are not counted.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod count;
mod dialect;
mod fuzz;
mod imports;
mod map;
mod metrics;
mod names;
mod notices;
mod sample;
mod source;
mod structure;
mod test_times;

use metrics::StyleReport;
use source::SourceTree;

const HELP: &str = "\
cargo xtask style [--list] [--json] [--check] [--sample SEED] [DIR…]

Measures the style of the code below each DIR (default: src and crates/*/src of this workspace).
  --list         print the places behind each figure
  --json         print JSON instead of a table, with the places
  --check        exit with 1 if a metric is worse than its ceiling, or than its target if it has none
  --sample SEED  print 60 strings, 30 doc comments, 20 functions and the names of 10 pages instead,
                 drawn at random to be read aloud; the same seed draws the same sample";

/// The command line of `style`.
#[derive(Debug, Default, PartialEq)]
struct StyleArguments {
    list: bool,
    json: bool,
    check: bool,
    sample: Option<u64>,
    folders: Vec<PathBuf>,
}

impl StyleArguments {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut parsed = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => parsed.list = true,
                "--json" => parsed.json = true,
                "--check" => parsed.check = true,
                "--sample" => {
                    let seed = arguments.next().ok_or("--sample needs a seed")?;
                    let seed = seed.parse().map_err(|_| format!("{seed} is not a number"))?;
                    parsed.sample = Some(seed);
                }
                option if option.starts_with('-') => {
                    return Err(format!("there is no option {option}\n\n{HELP}").into());
                }
                folder => parsed.folders.push(PathBuf::from(folder)),
            }
        }
        Ok(parsed)
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let done = match arguments.next().as_deref() {
        Some("style") => style(arguments),
        Some("test-times") => {
            workspace_root().and_then(|root| test_times::test_times(arguments, &root))
        }
        Some("map") => {
            let wanted: Vec<String> = arguments.collect();
            workspace_root().and_then(|root| map::run(&root, &wanted)).map(|()| true)
        }
        Some("structure") => workspace_root().and_then(|root| structure::run(&root)).map(|()| true),
        Some("notices") => workspace_root().and_then(|root| notices::notices(&root)),
        Some("run-test") => match test_times::run_test(arguments) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Some("fuzz") => fuzz::fuzz(arguments),
        Some("help" | "--help" | "-h") => {
            let others = [map::HELP, structure::HELP, notices::HELP, fuzz::HELP];
            for help in [HELP, test_times::HELP].into_iter().chain(others) {
                println!("{help}\n");
            }
            Ok(true)
        }
        Some(other) => Err(format!("there is no command {other}\n\n{HELP}").into()),
        None => Err(HELP.into()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Measures and prints; false if `--check` was given and a metric is worse than its limit.
fn style(arguments: impl Iterator<Item = String>) -> Result<bool, Box<dyn Error>> {
    let arguments = StyleArguments::parse(arguments)?;
    let root = workspace_root()?;
    let folders = match &arguments.folders[..] {
        [] => product_folders(&root)?,
        folders => folders.to_vec(),
    };
    let tree = SourceTree::read(&folders, &root)?;
    if tree.files.is_empty() {
        return Err("no .rs files there".into());
    }
    if let Some(seed) = arguments.sample {
        print!("{}", sample::sample(&tree, &root, seed)?);
        return Ok(true);
    }
    let report = StyleReport::measure(&tree);
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report.json())?);
    } else {
        print!("{}", report.text(arguments.list));
    }
    Ok(!arguments.check || report.passes())
}

/// The parent directory of this crate. The variable at run time takes precedence, because worktrees
/// may share a target directory and so this program.
fn workspace_root() -> Result<PathBuf, Box<dyn Error>> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let root = manifest.parent().ok_or("this crate lies in no workspace")?;
    Ok(root.canonicalize()?)
}

/// `src` and `crates/*/src` of the workspace, those that exist.
fn product_folders(root: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut folders = vec![root.join("src")];
    let crates = root.join("crates");
    if crates.is_dir() {
        for entry in std::fs::read_dir(crates)? {
            folders.push(entry?.path().join("src"));
        }
    }
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<StyleArguments, Box<dyn Error>> {
        StyleArguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_and_folders_come_in_any_order() {
        let parsed = parse("src --check a/src").unwrap();
        assert!(parsed.check && !parsed.json);
        assert_eq!(parsed.folders, [PathBuf::from("src"), PathBuf::from("a/src")]);
        assert!(parse("--chekc").is_err());
        assert_eq!(parse("--sample 3").unwrap().sample, Some(3));
        assert!(parse("--sample").is_err() && parse("--sample three").is_err());
    }
}
