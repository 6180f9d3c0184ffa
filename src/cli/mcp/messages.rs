//! Messages of the Model Context Protocol (modelcontextprotocol.io/specification): JSON-RPC 2.0
//! (jsonrpc.org/specification), limited to the parts that a server of tools needs.
//!
//! Up to 2025-11-25 a client begins with `initialize`; since 2026-07-28 each request names its
//! version, and `server/discover` describes the server. Replies do not depend on earlier messages,
//! so both are supported.

use super::answer::{bounded, shortened};
use super::arguments::CheckedArguments;
use super::session::McpSession;
use super::tools::TOOLS;
use serde_json::{Value, json};

/// The longest answer, in bytes of JSON: about 10,000 tokens.
pub(super) const MAX_ANSWER: usize = 32_000;

/// Versions in which a client begins with `initialize`, the newest first. The parts used here are
/// the same in all.
const HANDSHAKE_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Versions in which each request names its version.
const STATELESS_VERSIONS: [&str; 1] = ["2026-07-28"];

/// The field with the version of a request.
const VERSION_FIELD: &str = "io.modelcontextprotocol/protocolVersion";

/// The field with the name of the program in an answer.
const SERVER_FIELD: &str = "io.modelcontextprotocol/serverInfo";

/// The time for which a client may cache the list of tools, which only changes with the program.
const KEPT_MILLISECONDS: u64 = 3_600_000;

const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const METHOD_NOT_FOUND: i32 = -32_601;
const INVALID_PARAMS: i32 = -32_602;
const INTERNAL_ERROR: i32 = -32_603;
const UNSUPPORTED_VERSION: i32 = -32_022;

const INSTRUCTIONS: &str = "\
Reads reports of programs for Graphcore IPUs. A report is a directory that contains profile.pop, \
or a .pop file. A spec is a TOML file or the name of a bundled spec; it is simulated first. \
Begin with facts, then facts of execution-trace (what the run waits for) and insights (possible \
improvements, each with an upper bound of its gain); table has all other rows. A gain is an \
upper bound unless it was measured: prove it (insights with prove) or test it (try_change) \
before you recommend it. Cycles are cycles of the IPU clock; figures are per replica. Lists have \
at most `limit` entries, and give the number of the others. tilescope LINK opens a link.";

/// An error in the form of JSON-RPC.
struct RpcError {
    code: i32,
    message: String,
    data: Option<Value>,
}

impl RpcError {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    fn reply(self, id: &Value) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = self.data {
            error["data"] = data;
        }
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    }
}

/// The reply to a line that exceeds the limit.
pub(super) fn too_long(most: u64) -> Value {
    let problem = format!("a message is longer than {most} bytes");
    RpcError::new(INVALID_REQUEST, problem).reply(&Value::Null)
}

/// Parses the message in a line.
///
/// # Errors
/// The reply to an invalid message.
pub(super) fn read(line: &[u8]) -> Result<Value, Value> {
    serde_json::from_slice(line).map_err(|error| {
        let problem = format!("a message must be one line of JSON: {error}");
        RpcError::new(PARSE_ERROR, problem).reply(&Value::Null)
    })
}

/// Returns true if answering a message may take long.
pub(super) fn takes_time(message: &Value) -> bool {
    message.is_array() || message["method"] == "tools/call"
}

/// The reply to a message; notifications have none.
pub(super) fn reply(message: &Value, session: &McpSession) -> Option<Value> {
    match message {
        // Version 2025-03-26 sends several at once.
        Value::Array(messages) if !messages.is_empty() => {
            let replies: Vec<Value> =
                messages.iter().filter_map(|message| reply_to(message, session)).collect();
            if replies.is_empty() { None } else { Some(Value::Array(replies)) }
        }
        message => reply_to(message, session),
    }
}

/// The reply to a message that fails because of an internal error.
pub(super) fn broken(message: &Value) -> Value {
    let id = message.get("id").unwrap_or(&Value::Null);
    RpcError::new(INTERNAL_ERROR, "internal error: this is a bug in tilescope").reply(id)
}

fn reply_to(message: &Value, session: &McpSession) -> Option<Value> {
    let id = message.get("id");
    let is_answer = message.get("result").or(message.get("error")).is_some();
    let Some(method) = message["method"].as_str() else {
        // The server sends no requests, so an answer from the client is an error.
        let problem = "a message must be an object with a method";
        return (!is_answer)
            .then(|| RpcError::new(INVALID_REQUEST, problem).reply(id.unwrap_or(&Value::Null)));
    };
    let id = id?;
    Some(match result(method, &message["params"], session) {
        Ok(mut result) => {
            // Required since 2026-07-28, and ignored by clients of other versions.
            if method != "ping" {
                result["resultType"] = "complete".into();
            }
            json!({ "jsonrpc": "2.0", "id": id, "result": result })
        }
        Err(error) => error.reply(id),
    })
}

fn result(method: &str, parameters: &Value, session: &McpSession) -> Result<Value, RpcError> {
    check_version(parameters)?;
    match method {
        "initialize" => Ok(introduction(parameters)),
        "server/discover" => Ok(discovery()),
        "ping" => Ok(json!({})),
        "tools/list" => {
            let tools: Vec<Value> = TOOLS.iter().map(|tool| tool.description()).collect();
            Ok(kept(json!({ "tools": tools })))
        }
        "tools/call" => call(parameters, session),
        other => Err(RpcError::new(
            METHOD_NOT_FOUND,
            format!(
                "unknown method {other:?}; known: initialize, server/discover, ping, tools/list, \
                 tools/call"
            ),
        )),
    }
}

/// Refuses a request in an unsupported version.
fn check_version(parameters: &Value) -> Result<(), RpcError> {
    let Some(version) = parameters["_meta"].get(VERSION_FIELD) else { return Ok(()) };
    if version.as_str().is_some_and(|version| versions().any(|known| known == version)) {
        return Ok(());
    }
    let supported: Vec<&str> = versions().collect();
    let problem = format!("version {version} is not supported; known: {}", supported.join(", "));
    let data = json!({ "supported": supported, "requested": version });
    Err(RpcError { data: Some(data), ..RpcError::new(UNSUPPORTED_VERSION, problem) })
}

fn versions() -> impl Iterator<Item = &'static str> {
    STATELESS_VERSIONS.into_iter().chain(HANDSHAKE_VERSIONS)
}

/// A result that the client may cache.
fn kept(mut result: Value) -> Value {
    result["ttlMs"] = KEPT_MILLISECONDS.into();
    result["cacheScope"] = "public".into();
    result
}

fn program() -> Value {
    json!({ "name": "tilescope", "version": env!("CARGO_PKG_VERSION") })
}

fn introduction(parameters: &Value) -> Value {
    let asked = parameters["protocolVersion"].as_str().unwrap_or_default();
    let version = HANDSHAKE_VERSIONS.into_iter().find(|version| *version == asked);
    json!({
        "protocolVersion": version.unwrap_or(HANDSHAKE_VERSIONS[0]),
        "capabilities": { "tools": {} },
        "serverInfo": program(),
        "instructions": INSTRUCTIONS,
    })
}

fn discovery() -> Value {
    kept(json!({
        "supportedVersions": versions().collect::<Vec<_>>(),
        "capabilities": { "tools": {} },
        "instructions": INSTRUCTIONS,
        "_meta": { SERVER_FIELD: program() },
    }))
}

/// Runs a tool. Its errors are results too, so that the agent reads the reason.
fn call(parameters: &Value, session: &McpSession) -> Result<Value, RpcError> {
    let name = parameters["name"].as_str().unwrap_or_default();
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
        let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        let problem = format!("unknown tool {name:?}; known: {}", known.join(", "));
        return Err(RpcError::new(INVALID_PARAMS, problem));
    };
    let answer = CheckedArguments::of(tool.arguments, &parameters["arguments"])
        .and_then(|arguments| (tool.run)(&arguments, session))
        .and_then(|answer| Ok((bounded(answer.value)?, answer.picture)));
    Ok(match answer {
        Ok((value, picture)) => {
            // As text too, for clients of versions without structured content.
            let mut content = vec![json!({ "type": "text", "text": value.to_string() })];
            content.extend(picture.map(|picture| picture.content()));
            json!({ "content": content, "structuredContent": value, "isError": false })
        }
        Err(problem) => {
            let text = shortened(format!("error: {problem}"));
            json!({ "content": [{ "type": "text", "text": text }], "isError": true })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn answer(line: &[u8]) -> Option<Value> {
        match read(line) {
            Ok(message) => reply(&message, &McpSession::default()),
            Err(refused) => Some(refused),
        }
    }

    fn result_of(message: Value) -> Value {
        answer(message.to_string().as_bytes()).expect("a reply")["result"].clone()
    }

    #[test]
    fn the_newest_known_version_is_used() {
        let ask = |version: &str| {
            let parameters = json!({ "protocolVersion": version });
            let ask = json!({ "id": "a", "method": "initialize", "params": parameters });
            result_of(ask)["protocolVersion"].clone()
        };
        assert_eq!(ask("2024-11-05"), "2024-11-05");
        assert_eq!(ask("1999-01-01"), HANDSHAKE_VERSIONS[0]);
    }

    #[test]
    fn requests_may_name_their_version() {
        let ask = |version: &str| {
            let parameters = json!({ "_meta": { VERSION_FIELD: version } });
            let ask = json!({ "id": 1, "method": "server/discover", "params": parameters });
            answer(ask.to_string().as_bytes()).expect("a reply")
        };
        let found = &ask("2026-07-28")["result"];
        assert_eq!(found["supportedVersions"][0], "2026-07-28");
        assert_eq!(
            (&found["resultType"], &found["cacheScope"]),
            (&json!("complete"), &json!("public"))
        );
        let refused = &ask("2099-01-01")["error"];
        assert_eq!(refused["code"], UNSUPPORTED_VERSION);
        assert_eq!(refused["data"]["requested"], "2099-01-01");
    }

    #[test]
    fn notifications_and_answers_have_no_reply() {
        assert_eq!(answer(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), None);
        assert_eq!(answer(br#"{"jsonrpc":"2.0","id":4,"result":{}}"#), None);
        assert_eq!(answer(br#"[{"method":"notifications/initialized"}]"#), None);
    }

    #[test]
    fn invalid_requests_are_reported() {
        let code = |line: &[u8]| answer(line).expect("a reply")["error"]["code"].clone();
        assert_eq!(code(b"nonsense"), PARSE_ERROR);
        assert_eq!(code(b"[]"), INVALID_REQUEST);
        assert_eq!(code(br#"{"id":1}"#), INVALID_REQUEST);
        assert_eq!(code(br#"{"id":1,"method":"walk"}"#), METHOD_NOT_FOUND);
        assert_eq!(code(br#"{"id":1,"method":"tools/call"}"#), INVALID_PARAMS);
        let several = answer(br#"[{"id":1,"method":"ping"},{"id":2,"method":"ping"}]"#);
        assert_eq!(several.expect("replies").as_array().map(Vec::len), Some(2));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn any_bytes_are_answered_or_refused(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = answer(&line);
        }
    }
}
