//! The driver @NAME@: one JSON object a line on standard input, one reply to each on standard output.

mod json;
mod reader;

use json::{quoted, Json};
use std::io::{self, BufRead, Write};

const HELLO: &str = r#"{"name":"@NAME@","version":"0.1","language":"Rust","formats":{"@FORMAT@":["read"]},"features":[]}"#;

/// Why there is no reply of the kind `ok`.
pub enum No {
    /// The input is not what the format allows.
    Refused(String),
    /// There is no way to do this, whatever the input.
    Unsupported(String),
    /// Something went wrong that is no refusal.
    Error(String),
}

/// What stands under `ok`, as JSON text.
fn answer(request: &Json) -> Result<String, No> {
    match request.get("op").and_then(Json::text) {
        Some("hello") => match request.get("protocol").and_then(Json::integer) {
            Some(1) => Ok(HELLO.to_string()),
            _ => Err(No::Error("this driver speaks protocol 1".into())),
        },
        Some("read") => read(request),
        Some("bye") => Ok("{}".to_string()),
        _ => Err(No::Unsupported("this operation".into())),
    }
}

fn read(request: &Json) -> Result<String, No> {
    if request.get("format").and_then(Json::text) != Some("@FORMAT@") {
        return Err(No::Unsupported("formats other than @FORMAT@".into()));
    }
    let path = request.get("path").and_then(Json::text);
    let path = path.ok_or_else(|| No::Error("a request without a path".into()))?;
    // A panic of the implementation is an error, not the end of the driver.
    std::panic::catch_unwind(|| reader::read(path)).unwrap_or_else(|_| Err(No::Error("panicked; see the log".into())))
}

fn main() -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        let request = match json::parse(&line) {
            Ok(request) => request,
            Err(problem) => {
                eprintln!("not a request: {problem}"); // standard error is the log
                std::process::exit(1);
            }
        };
        let id = request.get("id").and_then(Json::integer).unwrap_or(0);
        let body = match answer(&request) {
            Ok(body) => format!(r#""ok":{body}"#),
            Err(No::Refused(text)) => format!(r#""refused":{{"reason":{}}}"#, quoted(&text)),
            Err(No::Unsupported(text)) => format!(r#""unsupported":{{"what":{}}}"#, quoted(&text)),
            Err(No::Error(text)) => format!(r#""error":{{"message":{}}}"#, quoted(&text)),
        };
        let mut output = io::stdout().lock();
        writeln!(output, r#"{{"id":{id},{body}}}"#)?;
        output.flush()?;
        if request.get("op").and_then(Json::text) == Some("bye") {
            break;
        }
        line.clear();
    }
    Ok(())
}
