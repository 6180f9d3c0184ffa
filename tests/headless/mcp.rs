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

    /// Replies to requests, in the order of those.
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
        let mut replies: Vec<Value> =
            stdout(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        // What is done first is answered first.
        replies.sort_by_key(|reply| reply["id"].as_u64());
        assert_eq!(replies.len(), requests.len());
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
            match is_error {
                true => {
                    assert_eq!(result.get("structuredContent"), None);
                    (text.into(), true)
                }
                false => {
                    let answer: Value = serde_json::from_str(text).expect("JSON");
                    assert_eq!(result["structuredContent"], answer);
                    (answer, false)
                }
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
        ("picture", json!({ "report": report, "view": "limits" })),
        ("insights", json!({ "report": report })),
        ("try_change", json!({ "report": report, "changes": changes })),
        ("tune", json!({ "report": report, "budget": 3 })),
        ("compare", json!({ "source": report, "target": report, "target_changes": changes })),
        ("bisect", json!({ "good": report, "bad": report, "bad_changes": changes, "budget": 4 })),
        ("series", json!({ "reports": [report, "matmul_chain"], "per": "run" })),
    ]
}

/// The places where a value does not fit a JSON schema, for the keywords that schemas of tools use.
fn misfits(value: &Value, schema: &Value, place: &str) -> Vec<String> {
    let kinds = match &schema["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return Vec::new(),
    };
    let is_of = |kind: &&str| match *kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    };
    if !kinds.iter().any(is_of) {
        return vec![format!("{place} is no {kinds:?}: {value}")];
    }
    let mut found = Vec::new();
    for entry in value.as_array().into_iter().flatten() {
        found.extend(misfits(entry, &schema["items"], &format!("{place}[]")));
    }
    let Some(fields) = value.as_object() else { return found };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    found.extend(
        required
            .filter(|name| !fields.contains_key(*name))
            .map(|name| format!("no {place}.{name}")),
    );
    for (name, field) in fields {
        match schema["properties"].get(name) {
            Some(schema) => found.extend(misfits(field, schema, &format!("{place}.{name}"))),
            None if schema["additionalProperties"] == false => {
                found.push(format!("{place}.{name} is not declared"));
            }
            None => {}
        }
    }
    found
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
    for ((tool, arguments), (answer, is_error)) in
        questions.iter().zip(workplace.answers(&questions))
    {
        if *tool == "picture" && cfg!(not(feature = "gui")) {
            assert!(is_error && answer.as_str().is_some_and(|text| text.contains("gui")));
            continue;
        }
        assert!(!is_error, "{tool}: {answer}");
        let described = tools.iter().find(|described| described["name"] == *tool);
        let schema = &described.expect("a tool")["outputSchema"];
        assert_eq!(misfits(&answer, schema, tool), [""; 0], "{arguments}");
    }
    assert_eq!(workplace.files(), before);
}

#[test]
fn every_tool_reports_errors_in_its_arguments() {
    let workplace = Workplace::new();
    for (tool, mut arguments) in questions(&workplace.report()) {
        arguments["nonsense"] = json!(1);
        let problem = workplace.error(tool, arguments);
        assert!(problem.contains("\"nonsense\"") && problem.contains("known: "), "{problem}");
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
        (
            "table",
            json!({ "report": report, "find": "a", "sort": "b" }),
            "cannot be used with sql or find",
        ),
        ("table", json!({ "report": report, "table": "memory/x" }), "variables"),
        ("table", json!({ "report": report, "table": "memory", "sort": "width" }), "known: "),
        ("table", json!({ "report": report, "sql": "SELECT x FROM programs" }), "no such column"),
        ("table", json!({ "report": report, "sql": "DELETE FROM programs" }), "read-only"),
        ("compare", json!({ "source": report, "target": report, "view": "x" }), "operations"),
        (
            "compare",
            json!({ "source": report, "target": report, "gates": ["cycels > 1"] }),
            "cycles",
        ),
        ("try_change", json!({ "report": report, "changes": { "model.mm": 4 } }), "model.m"),
        ("facts", json!({ "report": "ssh://localhost/out" }), "does not start ssh"),
        ("try_change", json!({ "report": "ssh://h/x.pop", "changes": {} }), "does not start ssh"),
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
    let refused = replies.iter().filter(|reply| reply["error"]["code"].is_i64());
    assert_eq!(refused.count(), 4, "{text}");
    let of = |id: u64| replies.iter().find(|reply| reply["id"] == id).expect("a reply");
    assert!(of(2)["result"]["isError"] == true && !text.contains('\u{1b}'), "{text}");
    assert_eq!(of(3)["result"], json!({}));
}

/// A question that takes its time holds up no other.
#[test]
fn questions_are_answered_at_the_same_time() {
    let workplace = Workplace::new();
    let call = |id: u64, arguments: Value| {
        let call = json!({ "name": "facts", "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call }).to_string()
    };
    let spec = json!({ "report": "mnist_pipeline", "changes": { "options.device_iterations": 3 } });
    let ping = json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" }).to_string();
    // Both of the first are about one spec, which is simulated once.
    let lines = [
        call(1, spec.clone()),
        call(2, spec),
        call(3, json!({ "report": workplace.report() })),
        ping,
    ];
    let output = served(&format!("{}\n", lines.join("\n")), &workplace.temporary());
    let replies: Vec<Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let ids: Vec<u64> = replies.iter().filter_map(|reply| reply["id"].as_u64()).collect();
    assert_eq!(ids.len(), 4, "{replies:?}");
    assert_eq!(ids[0], 9, "{ids:?}");
    let of = |id: u64| &replies[ids.iter().position(|known| *known == id).expect("answered")];
    assert_eq!(of(1)["result"], of(2)["result"]);
    assert_eq!(of(3)["result"]["isError"], false);
    assert_eq!(std::fs::read_dir(workplace.temporary()).expect("a directory").count(), 0);
}

#[cfg(feature = "gui")]
#[test]
fn pictures_are_images() {
    let workplace = Workplace::new();
    let arguments =
        json!({ "report": workplace.report(), "view": "execution-trace", "theme": "dark" });
    let call = json!({ "name": "picture", "arguments": arguments });
    let reply = workplace.replies(&[json!({ "method": "tools/call", "params": call })]).remove(0);
    let image = &reply["result"]["content"][1];
    assert_eq!((&image["type"], &image["mimeType"]), (&json!("image"), &json!("image/png")));
    // The signature of a PNG file.
    assert!(image["data"].as_str().is_some_and(|data| data.starts_with("iVBORw0KGgo")));
    let problem = workplace.error("picture", json!({ "report": workplace.report(), "view": "x" }));
    assert!(problem.contains("execution-trace"), "{problem}");
}

/// Searches name specs as the agent does, not the copies that children read.
#[test]
fn searches_tell_of_the_spec_that_was_named() {
    let workplace = Workplace::new();
    let report = workplace.report();
    let tuned = workplace.answer("tune", json!({ "report": report, "budget": 3, "limit": 2 }));
    assert_eq!(tuned["spec"], report.as_str());
    assert!(!tuned.to_string().contains("spec.toml"), "{tuned}");
    let changes = json!({ "model.m": 256 });
    let arguments =
        json!({ "good": report, "bad": "matmul_chain", "bad_changes": changes, "budget": 6 });
    let found = workplace.answer("bisect", arguments);
    assert_eq!(found["bad"]["name"], "matmul_chain");
    let whole = found["difference"].as_f64().expect("a difference");
    let parts = found["parts"].as_array().expect("parts").iter();
    let sum: f64 = parts.filter_map(|part| part["change"].as_f64()).sum();
    let rest = found["interaction"]["change"].as_f64().expect("a rest");
    assert!((sum + rest - whole).abs() < 1e-6 * whole.abs(), "{found}");
    let problem = workplace.error("tune", json!({ "report": report, "free": ["model.x"] }));
    assert!(problem.contains("model.x"), "{problem}");
    let problem = workplace.error("series", json!({ "reports": [] }));
    assert!(problem.contains("reports"), "{problem}");
}
