//! Inputs to mutate, and the commands that read them.

use super::mutations::{mutate_bytes, mutate_report, mutate_text};
use crate::common::{sample, stdout, tilescope};
use crate::report_support::foreign::Foreign;
use crate::report_support::{Dice, random_report};
use rusqlite::Connection;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use tilescope_fixtures::ipu_stack_profile::IpuStackProfile;
use tilescope_report::StepLayout;

/// Commands that read a report `R` and write files `O`.
const OF_REPORTS: &[&[&str]] = &[
    &["summary", "R", "--json"],
    &["why", "R"],
    &["insights", "R"],
    &["verify", "R"],
    &["find", "R", "in:steps cycles>10"],
    &["find", "R", "conv"],
    &["compare", "R", "R", "--view", "all"],
    &["series", "R", "R"],
    &["samples", "R"],
    &["report", "R", "-o", "O"],
    &["slice", "R", "--range", "0..100000", "-o", "O"],
    &["export", "R", "--format", "parquet", "-o", "O"],
    &["export", "R", "--format", "arrow", "--table", "variables", "-o", "O"],
    &["export", "R", "--format", "parquet", "--table", "operations", "-o", "O"],
    &["export", "R", "--format", "perfetto", "-o", "O"],
    &["export", "R", "--format", "chrome-trace", "-o", "O"],
    &["export", "R", "--view", "program-tree", "--format", "csv", "-o", "O"],
    &["export", "R", "--view", "limits", "--format", "json", "-o", "O"],
    &["export", "R", "--view", "liveness", "--format", "csv", "-o", "O"],
    &["export", "R", "--view", "execution-trace", "--format", "json", "-o", "O"],
    &["export", "R", "--view", "tile-mapping", "--format", "csv", "-o", "O"],
    &["query", "R", "SELECT name, sum(cycles) FROM program_cycles GROUP BY 1"],
    &["query", "R", "SELECT count(*) FROM steps"],
];

/// Specs that compile quickly.
const SPECS: [&str; 4] = ["matmul_chain", "prefetch", "mnist_pipeline", "too_large"];

/// Pieces of queries.
const QUESTIONS: [&str; 8] = [
    "SELECT type, count(*) FROM steps GROUP BY type ORDER BY 2 DESC LIMIT 10",
    "SELECT p.name, sum(b.cycles) FROM steps_by_ipu b JOIN steps s ON s.id = b.step_id JOIN programs p ON p.id = s.program GROUP BY 1",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n LIMIT 5",
    "SELECT * FROM program_cycles(0, 100000) WHERE ipu = 0",
    "in:steps cycles>1k name:conv type=Exchange",
    "operation:\"layer 1\" bytes>=1MiB",
    "execution.total_cycles > +2%",
    "memory.out_of_memory_tiles > 0",
];

/// A mutated input, and the command that reads it.
pub(super) struct FuzzInput {
    pub(super) words: Vec<String>,
    pub(super) stdin: Vec<u8>,
    /// Files that the command must not change.
    pub(super) files: Vec<PathBuf>,
}

/// The inputs to mutate.
pub(super) struct Corpus {
    reports: Vec<Vec<u8>>,
    specs: Vec<String>,
    models: Vec<Vec<u8>>,
    results: Vec<u8>,
    profile: Vec<u8>,
}

impl Corpus {
    /// Number of kinds of inputs.
    pub(super) const KINDS: usize = 8;

    /// Collects and creates the inputs.
    pub(super) fn new(directory: &Path) -> Self {
        fs::create_dir_all(directory).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut reports = Vec::new();
        for name in ["matmul_chain", "mnist_pipeline", "too_large"] {
            reports.push(fs::read(Path::new(&sample(name)).join("profile.pop")).unwrap());
        }
        let chunks = directory.join("chunks");
        let words = ["simulate", "mnist_pipeline", "--layout", "chunks", "-o"];
        let rest = [chunks.to_str().unwrap(), "--set", "options.device_iterations=2"];
        assert!(tilescope(&[&words[..], &rest[..]].concat()).status.success());
        reports.push(fs::read(chunks.join("profile.pop")).unwrap());
        let mut random = random_report(5, 500);
        random.layout = StepLayout::Rows;
        reports.push(fs::read(random.write(&directory.join("random")).unwrap()).unwrap());
        let theirs = directory.join("theirs.pop");
        Foreign { steps: 300, tiles_per_ipu: 64, ..Foreign::default() }.write(&theirs);
        reports.push(fs::read(&theirs).unwrap());
        let results = directory.join("results.db");
        let sweep = [
            "sweep",
            "matmul_chain",
            "--results",
            results.to_str().unwrap(),
            "--vary",
            "model.m=8,16",
        ];
        assert!(tilescope(&sweep).status.success());
        let specs = SPECS.map(|name| stdout(&tilescope(&["specs", name]))).to_vec();
        let models = root.join("tests/data/onnx");
        let models =
            ["lstm.onnx", "guide_mnist.onnx", "bert_dynamo.onnx", "mnist_dynamic_batch.onnx"]
                .map(|name| fs::read(models.join(name)).unwrap());
        Self {
            reports,
            specs,
            models: models.to_vec(),
            results: fs::read(results).unwrap(),
            profile: IpuStackProfile::layers(8, 3).bytes(),
        }
    }

    /// An input of a kind, in a directory.
    pub(super) fn input(&self, kind: usize, dice: &mut Dice, place: &Path) -> FuzzInput {
        match kind {
            0 | 1 => self.report(kind == 0, dice, place),
            2 => self.spec(dice, place),
            3 => self.model(dice, place),
            4 => self.results(dice, place),
            5 => self.profile(dice, place),
            6 => self.messages(dice, place),
            _ => self.question(dice, place),
        }
    }

    /// A report with changed cells, or bytes.
    fn report(&self, by_cells: bool, dice: &mut Dice, place: &Path) -> FuzzInput {
        let file = place.join("profile.pop");
        let mut bytes = self.reports[dice.below(self.reports.len() as u64) as usize].clone();
        if !by_cells {
            mutate_bytes(&mut bytes, dice);
        }
        fs::write(&file, bytes).unwrap();
        if by_cells {
            mutate_report(&Connection::open(&file).unwrap(), dice);
        }
        let command = dice.pick(OF_REPORTS);
        let words = filled(command, &file, &place.join("output"));
        FuzzInput { words, stdin: Vec::new(), files: vec![file] }
    }

    fn spec(&self, dice: &mut Dice, place: &Path) -> FuzzInput {
        let file = place.join("spec.toml");
        let mut text = self.specs[dice.below(self.specs.len() as u64) as usize].clone();
        mutate_text(&mut text, dice);
        fs::write(&file, text).unwrap();
        let words = ["simulate", path(&file), "--check", "--json"].map(str::to_owned).to_vec();
        FuzzInput { words, stdin: Vec::new(), files: vec![file] }
    }

    fn model(&self, dice: &mut Dice, place: &Path) -> FuzzInput {
        let file = place.join("model.onnx");
        let mut bytes = self.models[dice.below(self.models.len() as u64) as usize].clone();
        mutate_bytes(&mut bytes, dice);
        fs::write(&file, bytes).unwrap();
        let words = ["onnx", path(&file)].map(str::to_owned).to_vec();
        FuzzInput { words, stdin: Vec::new(), files: vec![file] }
    }

    /// Results of a sweep, which the next sweep reads and extends.
    fn results(&self, dice: &mut Dice, place: &Path) -> FuzzInput {
        let file = place.join("results.db");
        let mut bytes = self.results.clone();
        if dice.chance(2) {
            mutate_bytes(&mut bytes, dice);
            fs::write(&file, bytes).unwrap();
        } else {
            fs::write(&file, bytes).unwrap();
            mutate_report(&Connection::open(&file).unwrap(), dice);
        }
        let words = ["sweep", "matmul_chain", "--results", path(&file), "--vary", "model.m=8,16"];
        FuzzInput { words: words.map(str::to_owned).to_vec(), stdin: Vec::new(), files: Vec::new() }
    }

    /// A profile of another tool.
    fn profile(&self, dice: &mut Dice, place: &Path) -> FuzzInput {
        let file = place.join("profile.capnp");
        let mut bytes = self.profile.clone();
        mutate_bytes(&mut bytes, dice);
        fs::write(&file, bytes).unwrap();
        let command = dice.pick(OF_REPORTS);
        let words = filled(command, &file, &place.join("output"));
        FuzzInput { words, stdin: Vec::new(), files: vec![file] }
    }

    /// Messages of an agent.
    fn messages(&self, dice: &mut Dice, place: &Path) -> FuzzInput {
        let file = place.join("profile.pop");
        fs::write(&file, &self.reports[0]).unwrap();
        let mut lines = String::new();
        for id in 0..5 {
            let tools = ["facts", "insights", "table", "figure", "compare", "nothing"];
            let arguments = json!({
                "report": path(&file), "source": path(&file), "target": path(&file),
                "topic": dice.pick(&["limits", "memory", "x"]), "limit": dice.below(1 << 40),
                "table": dice.pick(&["memory/tiles", "steps", "x"]), "sql": dice.pick(&QUESTIONS),
            });
            let call = json!({ "name": dice.pick(&tools), "arguments": arguments });
            let method = dice.pick(&["tools/call", "tools/call", "initialize", "tools/list", "x"]);
            let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": call });
            let mut line = message.to_string();
            if dice.chance(2) {
                mutate_text(&mut line, dice);
            }
            lines.push_str(&line.replace('\n', " "));
            lines.push('\n');
        }
        FuzzInput { words: vec!["mcp".to_owned()], stdin: lines.into_bytes(), files: vec![file] }
    }

    /// A query, a search or a gate.
    fn question(&self, dice: &mut Dice, place: &Path) -> FuzzInput {
        let file = place.join("profile.pop");
        fs::write(&file, &self.reports[dice.below(2) as usize]).unwrap();
        let mut text = dice.pick(&QUESTIONS).to_owned();
        mutate_text(&mut text, dice);
        // No argument of a program can contain this byte, and one that begins with a dash is an
        // option.
        let text = format!(" {}", text.replace('\0', " "));
        let report = path(&file);
        let words: Vec<&str> = match dice.below(3) {
            0 => vec!["query", report, &text, "--timeout", "2"],
            1 => vec!["find", report, &text],
            _ => vec!["compare", report, report, "--fail-if", &text],
        };
        let words = words.into_iter().map(str::to_owned).collect();
        FuzzInput { words, stdin: Vec::new(), files: vec![file] }
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The words of a command, with the paths of a report and of an output filled in.
fn filled(command: &[&str], report: &Path, output: &Path) -> Vec<String> {
    let mut words = Vec::new();
    for word in command {
        words.push(match *word {
            "R" => path(report).to_owned(),
            "O" => path(output).to_owned(),
            word => word.to_owned(),
        });
    }
    words
}
