//! `mcp` as seen by agents: messages in, messages out.

use crate::common::{self, stdout, tilescope};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The longest answer of a tool, in bytes.
const MAX_ANSWER: usize = 32_000;

/// Runs the program with these lines as its input.
fn served(lines: &str, directory: &Path) -> Output {
    served_with(&[], lines, directory)
}

fn served_with(options: &[&str], lines: &str, directory: &Path) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tilescope"))
        .arg("mcp")
        .args(options)
        .env("TMPDIR", directory)
        .env("XDG_CACHE_HOME", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("an input");
    input.write_all(lines.as_bytes()).expect("written");
    drop(input);
    child.wait_with_output().expect("it ends with its input")
}

#[test]
fn nothing_outside_of_the_root_is_read() {
    let directory = tempfile::tempdir().expect("directory");
    let root = directory.path().join("reports");
    std::fs::create_dir(&root).expect("a directory");
    let sample = PathBuf::from(common::sample("matmul_chain"));
    let inside = root.join("profile.pop");
    std::fs::copy(sample.join("profile.pop"), &inside).expect("a copy");
    let spec = root.join("model.toml");
    std::fs::write(&spec, "model.onnx = \"/etc/passwd\"\n").expect("written");
    let climbing = root.join("..").join("reports").join("..").join("other");
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let cases = [
        (text(&root), true),
        (text(&inside), true),
        ("matmul_chain".to_owned(), true),
        (text(&sample), false),
        (text(&climbing), false),
        ("/etc/passwd".to_owned(), false),
        (text(&spec), false),
    ];
    for (report, is_read) in cases {
        let call = json!({ "name": "facts", "arguments": { "report": report } });
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call });
        let lines = format!("{request}\n");
        let output = served_with(&["--root", &text(&root)], &lines, directory.path());
        let answer: Value = serde_json::from_str(&stdout(&output)).expect("an answer");
        assert_eq!(answer["result"]["isError"] == false, is_read, "{report}: {answer}");
    }
}

/// Ending it in the middle of a simulation leaves no files.
#[cfg(unix)]
#[test]
fn ended_in_the_middle_it_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("directory");
    let left = || std::fs::read_dir(directory.path()).expect("a directory").count();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tilescope"))
        .arg("mcp")
        .env("TMPDIR", directory.path())
        .env("XDG_CACHE_HOME", directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    // Held to the end: the program would end with its input.
    let mut input = child.stdin.take().expect("an input");
    let call = json!({ "name": "facts", "arguments": { "report": "bert_large_pod16" } });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call });
    writeln!(input, "{request}").expect("written");
    while left() == 0 {
        assert!(child.try_wait().expect("a state").is_none(), "it works");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(common::signal("TERM", &child.id().to_string()));
    let status = child.wait().expect("it ends");
    assert_eq!((status.code(), left()), (Some(130), 0));
}

/// A report in a directory, and another one for temporary files.
struct Workplace {
    directory: tempfile::TempDir,
}

impl Workplace {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("directory");
        let overrides = ["model.m=64", "model.k=64", "model.n=64"];
        common::report_file(&common::spec("matmul_chain", &overrides), directory.path());
        std::fs::create_dir(directory.path().join("tmp")).expect("made");
        Self { directory }
    }

    fn report(&self) -> String {
        self.directory.path().to_string_lossy().into_owned()
    }

    fn temporary(&self) -> PathBuf {
        self.directory.path().join("tmp")
    }

    /// Replies to requests, in their order.
    fn replies(&self, requests: &[Value]) -> Vec<Value> {
        let lines: String = (0..)
            .zip(requests)
            .map(|(id, request)| {
                let mut request = request.clone();
                request["jsonrpc"] = "2.0".into();
                request["id"] = json!(id);
                format!("{request}\n")
            })
            .collect();
        let output = served(&lines, &self.temporary());
        assert!(output.status.success(), "{output:?}");
        let replies: Vec<Value> =
            stdout(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        for (id, reply) in (0..).zip(&replies) {
            assert_eq!((&reply["jsonrpc"], &reply["id"]), (&json!("2.0"), &json!(id)));
        }
        replies
    }

    /// Answers of tools, each with an error flag.
    fn answers(&self, calls: &[(&str, Value)]) -> Vec<(Value, bool)> {
        let request = |(tool, arguments): &(&str, Value)| json!({ "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
        let replies = self.replies(&calls.iter().map(request).collect::<Vec<_>>());
        let answer = |reply: Value| {
            let result = &reply["result"];
            let text = result["content"][0]["text"].as_str().expect("a text");
            assert!(text.len() <= MAX_ANSWER, "{} bytes", text.len());
            let is_error = result["isError"].as_bool().expect("a flag");
            if is_error {
                (text.into(), true)
            } else {
                (serde_json::from_str(text).expect("JSON"), false)
            }
        };
        replies.into_iter().map(answer).collect()
    }

    fn answer(&self, tool: &str, arguments: Value) -> Value {
        let (answer, is_error) = self.answers(&[(tool, arguments)]).remove(0);
        assert!(!is_error, "{answer}");
        answer
    }

    fn error(&self, tool: &str, arguments: Value) -> String {
        let (answer, is_error) = self.answers(&[(tool, arguments)]).remove(0);
        assert!(is_error, "{answer}");
        answer.as_str().expect("words").to_owned()
    }

    /// All files below it.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        let mut directories = vec![self.directory.path().to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
                match entry.path() {
                    path if path.is_dir() => directories.push(path),
                    path => files.push((path.clone(), std::fs::read(path).expect("a file"))),
                }
            }
        }
        files.sort();
        files
    }
}

/// Questions for each tool, in the order of tools.
fn questions(report: &str) -> Vec<(&'static str, Value)> {
    let changes = json!({ "model.m": 128 });
    vec![
        ("facts", json!({ "report": report })),
        ("facts", json!({ "report": report, "topic": "execution-trace" })),
        ("facts", json!({ "report": report, "topic": "execution-trace", "at": "3" })),
        ("facts", json!({ "report": report, "topic": "limits" })),
        ("facts", json!({ "report": report, "topic": "limits", "operation": "m", "limit": 3 })),
        ("facts", json!({ "report": report, "topic": "spec" })),
        ("table", json!({ "report": report })),
        ("table", json!({ "report": report, "table": "memory/variables" })),
        ("table", json!({ "report": report, "table": "limits/operations", "contains": "mat" })),
        ("table", json!({ "report": report, "sql": "slowest-programs" })),
        ("table", json!({ "report": report, "find": "in:operations cycles>0" })),
        ("table", json!({ "table": "specs" })),
        ("table", json!({ "table": "keys", "contains": "io_tiles" })),
        ("figure", json!({ "report": report, "topic": "limits", "figure": "waterfall" })),
        ("insights", json!({ "report": report })),
        ("try_change", json!({ "report": report, "changes": changes })),
        ("compare", json!({ "source": report, "target": report, "target_changes": changes })),
    ]
}

#[test]
fn every_tool_answers_and_leaves_nothing_behind() {
    let workplace = Workplace::new();
    let before = workplace.files();
    let listed = workplace.replies(&[json!({ "method": "tools/list" })]).remove(0);
    let tools = listed["result"]["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    let questions = questions(&workplace.report());
    let mut asked: Vec<&str> = questions.iter().map(|(tool, _)| *tool).collect();
    asked.dedup();
    assert_eq!(names, asked);
    for tool in tools {
        let schema = &tool["inputSchema"];
        assert_eq!(
            (&schema["type"], &schema["additionalProperties"]),
            (&json!("object"), &json!(false))
        );
        for (name, property) in schema["properties"].as_object().expect("properties") {
            assert!(property["type"].is_string() && property["description"].is_string(), "{name}");
        }
        assert!(tool["description"].as_str().is_some_and(|about| about.len() > 40), "{tool}");
    }
    for ((tool, _), (answer, is_error)) in questions.iter().zip(workplace.answers(&questions)) {
        assert!(!is_error, "{tool}: {answer}");
    }
    assert_eq!(workplace.files(), before);
}

#[test]
fn every_tool_reports_errors_in_its_arguments() {
    let workplace = Workplace::new();
    for (tool, mut arguments) in questions(&workplace.report()) {
        arguments["nonsense"] = json!(1);
        let problem = workplace.error(tool, arguments);
        assert!(problem.contains("\"nonsense\"") && problem.contains("there are: "), "{problem}");
    }
    let report = workplace.report();
    let cases = [
        ("facts", json!({}), "report is missing"),
        ("facts", json!({ "report": "/no/such/report.pop" }), "/no/such/report.pop"),
        ("facts", json!({ "report": "mnist_pipelin" }), "mnist_pipeline"),
        (
            "facts",
            json!({ "report": "mnist_pipeline", "changes": { "options.x": 1 } }),
            "options.x",
        ),
        ("facts", json!({ "report": report, "topic": "execution-trace", "at": "a" }), "STEP:IPU"),
        ("facts", json!({ "report": report, "at": "1" }), "execution-trace"),
        ("facts", json!({ "report": report, "topic": "x" }), "limits"),
        ("figure", json!({ "report": report, "topic": "limits", "figure": "x" }), "roofline"),
        ("table", json!({ "table": "memory" }), "report is missing"),
        ("table", json!({ "report": report, "find": "cycles>" }), "^"),
        ("table", json!({ "report": report, "find": "a", "sql": "b" }), "at a time"),
        ("table", json!({ "report": report, "find": "a", "sort": "b" }), "rows of a table"),
        ("table", json!({ "report": report, "table": "memory/x" }), "variables"),
        ("table", json!({ "report": report, "table": "memory", "sort": "width" }), "there are: "),
        ("table", json!({ "report": report, "sql": "SELECT x FROM programs" }), "no such column"),
        ("table", json!({ "report": report, "sql": "DELETE FROM programs" }), "only reads"),
        ("compare", json!({ "source": report, "target": report, "view": "x" }), "operations"),
        (
            "compare",
            json!({ "source": report, "target": report, "gates": ["cycels > 1"] }),
            "cycles",
        ),
        ("try_change", json!({ "report": report, "changes": { "model.mm": 4 } }), "model.m"),
        ("facts", json!({ "report": "ssh://localhost/out" }), "starts no ssh"),
        ("try_change", json!({ "report": "ssh://h/x.pop", "changes": {} }), "starts no ssh"),
        ("facts", json!({ "report": "/etc/passwd", "topic": "spec" }), "/etc/passwd"),
    ];
    for (tool, arguments, expected) in cases {
        let problem = workplace.error(tool, arguments);
        assert!(problem.contains(expected), "{tool}: {problem}");
    }
}

#[test]
fn figures_are_those_of_the_command_line() {
    let workplace = Workplace::new();
    let report = workplace.report();
    let printed = |words: &[&str]| -> Value {
        serde_json::from_str(&stdout(&tilescope(words))).expect("JSON")
    };
    let summary = workplace.answer("facts", json!({ "report": report }));
    assert_eq!(summary["values"], printed(&["summary", &report, "--json"]));
    let cycles = summary["units"]["cycles"].as_array().expect("paths");
    assert!(cycles.contains(&json!("execution.total_cycles")), "{cycles:?}");
    let why = workplace.answer("facts", json!({ "report": report, "topic": "execution-trace" }));
    let expected = printed(&["why", &report, "--json"]);
    assert_eq!(why["cycles"], expected["cycles"]);
    assert_eq!(why["why"].as_array().map(Vec::len), expected["why"].as_array().map(Vec::len));
    let arguments =
        json!({ "report": report, "table": "execution-trace/critical-path", "limit": 1000 });
    let path = workplace.answer("table", arguments);
    let sum = |rows: &Value, share: &dyn Fn(&Value) -> Option<f64>| -> f64 {
        rows.as_array().expect("rows").iter().filter_map(share).sum()
    };
    let at = path["columns"].as_array().expect("columns");
    let at = at.iter().position(|column| column["name"] == "Share").expect("a share");
    assert!((sum(&path["rows"], &|row| row[at].as_f64()) - 1.0).abs() < 1e-9);
    assert!((sum(&expected["path"], &|row| row["share"].as_f64()) - 1.0).abs() < 1e-9);
    let found = workplace.answer("table", json!({ "report": report, "find": "in:steps" }));
    assert_eq!(found["totals"], printed(&["find", &report, "in:steps", "--json"])["totals"]);
}

#[test]
fn lists_are_cut_with_a_note() {
    let workplace = Workplace::new();
    let sql = "SELECT tile, total FROM memory_by_tile ORDER BY tile";
    let arguments = json!({ "report": workplace.report(), "sql": sql, "limit": 2 });
    let rows = workplace.answer("table", arguments)["rows"].clone();
    assert_eq!((&rows[1]["tile"], &rows[2]["left_off"]), (&json!(1), &json!(1_470)));
    let arguments = json!({ "report": workplace.report(), "table": "memory", "limit": 2 });
    let table = workplace.answer("table", arguments);
    let rows = table["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    // Half of the 1,472 tiles would exceed the limit of an answer.
    assert_eq!(rows[2]["left_off"], 1_470);
    let arguments = json!({ "report": workplace.report(), "table": "memory", "limit": 1000 });
    let whole = workplace.answer("table", arguments);
    let rows = whole["rows"].as_array().expect("rows");
    let left_off = rows.last().and_then(|last| last["left_off"].as_u64()).expect("left off");
    assert_eq!(rows.len() as u64 - 1 + left_off, 1_472);
}

#[test]
fn links_lead_to_places_of_permanent_reports() {
    let workplace = Workplace::new();
    let topic = "execution-trace";
    let arguments = json!({ "report": workplace.report(), "topic": topic });
    let why = workplace.answer("facts", arguments);
    let link = why["why"][0]["links"][0]["link"].as_str().expect("a link");
    assert!(link.starts_with("tilescope:/") && link.contains("?view=execution-trace"), "{link}");
    assert!(link.contains("profile.pop") && link.contains("select.cycles="), "{link}");
    let spec = workplace.answer("facts", json!({ "report": "matmul_chain", "topic": topic }));
    assert_eq!(spec["why"][0]["links"][0].get("link"), None);
    assert!(spec["note"].as_str().is_some_and(|note| note.contains("simulate")), "{spec}");
}

#[test]
fn gains_are_proven_and_gates_checked() {
    let workplace = Workplace::new();
    let arguments = json!({
        "report": "prefetch", "prove": true, "limit": 50,
        "changes": { "options.device_iterations": 1 },
    });
    let found = workplace.answer("insights", arguments);
    let findings = found["findings"].as_array().expect("findings");
    let proposing = findings.iter().filter(|finding| finding["changes"].is_object());
    let unmeasured = proposing.clone().find(|finding| finding["measured"].is_null());
    assert!(proposing.count() > 0 && unmeasured.is_none(), "{found}");
    let report = workplace.report();
    let compared = json!({
        "source": report, "target": report, "target_changes": { "model.m": 512 },
        "gates": ["cycles > +1%", "memory.out_of_memory_tiles > 0"], "per": "run",
    });
    let compared = workplace.answer("compare", compared);
    assert_eq!(compared["gates"][0]["violated"], true, "{compared}");
    assert_eq!(compared["gates"][1]["violated"], false, "{compared}");
    let tried = json!({ "report": report, "changes": { "model.m": 512 } });
    let tried = workplace.answer("try_change", tried);
    let cycles = |side: &str| tried[side]["cycles"].as_u64().expect("cycles");
    assert!(cycles("after") > cycles("before"), "{tried}");
    assert!(tried["measured"]["time"].as_f64() > Some(0.0), "{tried}");
    for side in ["before", "after"] {
        let band = &tried[side]["expected"]["cycles"];
        assert!(band["low"].as_f64() < band["high"].as_f64(), "{tried}");
    }
}

#[test]
fn a_client_is_greeted_in_its_version_and_hostile_lines_are_refused() {
    let workplace = Workplace::new();
    let parameters = json!({ "protocolVersion": "2025-06-18", "capabilities": {} });
    let greeted =
        workplace.replies(&[json!({ "method": "initialize", "params": parameters })]).remove(0);
    let result = &greeted["result"];
    assert_eq!(result["protocolVersion"], "2025-06-18");
    assert_eq!(result["serverInfo"]["name"], "tilescope");
    let deep = "[".repeat(100_000);
    let long = format!("{{\"id\":1,\"method\":\"{}\"}}", "x".repeat(2 << 20));
    let control = "{\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"facts\",\
                   \"arguments\":{\"report\":\"\\u001b]0;x\\u0007\"}}}";
    let lines =
        format!("{deep}\n{long}\n\u{1b}[2J\n\0\n{control}\n{{\"id\":3,\"method\":\"ping\"}}\n");
    let output = served(&lines, &workplace.temporary());
    assert!(output.status.success());
    let text = stdout(&output);
    let replies: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(replies.len(), 6);
    assert!(replies[..4].iter().all(|reply| reply["error"]["code"].is_i64()), "{text}");
    assert!(replies[4]["result"]["isError"] == true && !text.contains('\u{1b}'), "{text}");
    assert_eq!(replies[5]["result"], json!({}));
}
