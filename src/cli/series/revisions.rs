//! Specs from revisions of a Git repository.
//!
//! Files are read out of the repository with Git's plumbing: nothing is checked out, and no filter,
//! pager or hook of the repository runs.

use super::SeriesInputs;
use crate::cli::command::CliError;
use crate::cli::error::{JobError, UsageError};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tilescope_analysis::series::{SeriesOrder, SeriesSource, UnreadReport, arrange};
use tilescope_sim::specification::SpecSource;

/// The maximum number of bytes of Git's output that are read: the limit of a spec.
const MAX_BYTES: u64 = 1 << 20;

/// Number of letters of a commit's subject in the name of its run.
const SUBJECT_LETTERS: usize = 50;

/// The spec at `path` in the first revision of a range, and in each later one that changes it, the
/// oldest first.
///
/// # Errors
/// The range, the repository or the path does not exist, or there are more than `most` revisions.
pub(super) fn specs(range: &str, path: &str, most: usize) -> Result<SeriesInputs, CliError> {
    let ends = range.split_once("..").filter(|(from, to)| {
        !from.is_empty() && !from.starts_with('-') && !to.starts_with(['.', '-'])
    });
    let Some((from, to)) = ends else {
        return Err(UsageError::OptionExpects {
            option: "--git".to_owned(),
            expects: "a range of revisions such as v1..HEAD".to_owned(),
            found: format!("{range:?}"),
        }
        .into());
    };
    let to = if to.is_empty() { "HEAD" } else { to };
    let first = git(&["rev-list", "--max-count=1", FORMAT, "--end-of-options", from, "--"])?;
    let changed = git(&[
        "rev-list",
        "--reverse",
        FORMAT,
        "--end-of-options",
        &format!("{from}..{to}"),
        "--",
        &format!(":(top,literal){path}"),
    ])?;
    let revisions: Vec<(&str, &str)> =
        commits(&first).into_iter().chain(commits(&changed)).collect();
    if revisions.len() > most {
        let problem = format!(
            "{} revisions of {range} change {path}, but a series simulates at most {most} specs",
            revisions.len()
        );
        return Err(UsageError::Option { option: "--git", problem }.into());
    }
    let mut sources = Vec::new();
    let mut specs = BTreeMap::new();
    let mut refused = Vec::new();
    for (hash, subject) in revisions {
        let short: String = hash.chars().take(10).collect();
        let at = format!("{short}:{path}");
        let text = git(&["cat-file", "blob", &format!("{hash}:{path}")]);
        // The file may not exist at the start of the range.
        let Ok(text) = text else { continue };
        let subject: String = subject.chars().take(SUBJECT_LETTERS).collect();
        let name = format!("{short} {subject}").trim_end().to_owned();
        if names_a_file(&text) {
            let problem =
                "it names an ONNX file, and ONNX files of revisions are not read".to_owned();
            refused.push(UnreadReport { name, problem });
            continue;
        }
        let path = PathBuf::from(&at);
        let modified = None;
        specs.insert(path.clone(), SpecSource::from_text(&at, &text));
        sources.push(SeriesSource { name, path, modified });
    }
    if sources.is_empty() && refused.is_empty() {
        let problem = format!("no revision of {range} has a file {path:?}");
        return Err(UsageError::Option { option: "--spec", problem }.into());
    }
    arrange(&mut sources, SeriesOrder::Given)?;
    Ok(SeriesInputs { sources, specs, refused })
}

/// True if a spec uses a model in another file.
fn names_a_file(spec: &str) -> bool {
    let table = toml::from_str::<toml::Table>(spec).unwrap_or_default();
    table.get("model").is_some_and(|model| model.get("onnx").is_some())
}

/// The format of a commit as a line: its hash, a space and its subject.
const FORMAT: &str = "--format=tformat:%H %s";

/// Hashes and subjects. `rev-list` prints a line `commit HASH` before each.
fn commits(text: &str) -> Vec<(&str, &str)> {
    let is_hash = |word: &str| word.len() >= 40 && word.chars().all(|of| of.is_ascii_hexdigit());
    let lines = text.lines().filter_map(|line| {
        let (hash, subject) = line.split_once(' ').unwrap_or((line, ""));
        is_hash(hash).then_some((hash, subject))
    });
    lines.collect()
}

/// The output of a Git command.
fn git(arguments: &[&str]) -> Result<String, CliError> {
    let failed = |problem: String| JobError::Git { command: arguments[0].to_owned(), problem };
    let mut child = Command::new("git")
        .args(arguments)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let mut said = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout
            .take(MAX_BYTES + 1)
            .read_to_end(&mut said)
            .map_err(|error| failed(error.to_string()))?;
    }
    if said.len() as u64 > MAX_BYTES {
        let _ = child.kill();
        let _ = child.wait();
        return Err(
            failed(format!("it has more than {MAX_BYTES} bytes, the limit of a spec")).into()
        );
    }
    let ended = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if !ended.status.success() {
        let words = String::from_utf8_lossy(&ended.stderr);
        let first = words.lines().next().unwrap_or("it failed").to_owned();
        return Err(failed(first.trim_start_matches("fatal: ").to_owned()).into());
    }
    Ok(String::from_utf8(said).map_err(|_| failed("it is not UTF-8".to_owned()))?)
}
