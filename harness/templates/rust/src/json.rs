//! Just enough JSON for a driver without crates; serde_json and base64 do the same and more.

/// A JSON value. Numbers stay as they are spelled: the formats tell 4 from 4.0, and integers of 64 bits are exact.
pub enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

#[allow(dead_code)] // which of these a reader needs depends on the format
impl Json {
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// An integer spelled as one, without fraction and exponent.
    pub fn integer(&self) -> Option<i128> {
        match self {
            Json::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// A number with a finite binary64 value.
    pub fn real(&self) -> Option<f64> {
        match self {
            Json::Number(text) => text.parse().ok().filter(|value: &f64| value.is_finite()),
            _ => None,
        }
    }

    pub fn is_object(&self) -> bool {
        matches!(self, Json::Object(_))
    }

    /// Whether it is an object or a list without anything in it.
    pub fn is_empty(&self) -> bool {
        match self {
            Json::Object(members) => members.is_empty(),
            Json::List(items) => items.is_empty(),
            _ => false,
        }
    }
}

/// A string as JSON writes it.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out += &format!("\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out + "\""
}

/// An integer as the protocol writes it: a number up to 2^53 in magnitude, a decimal string beyond.
pub fn integer(value: i128) -> String {
    if value.abs() <= 1 << 53 {
        value.to_string()
    } else {
        format!("\"{value}\"")
    }
}

pub fn base64(data: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(data.len().div_ceil(3) * 4);
    for part in data.chunks(3) {
        let bits = part.iter().fold(0, |bits, &byte| bits << 8 | byte as u32) << (8 * (3 - part.len()));
        for i in 0..4 {
            out.push(if i <= part.len() { DIGITS[(bits >> (18 - 6 * i) & 63) as usize] as char } else { '=' });
        }
    }
    out
}

/// Parse one document. The text says what is wrong with it.
pub fn parse(bytes: &[u8]) -> Result<Json, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(0)?;
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.wrong("something behind the document")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn wrong(&self, what: &str) -> String {
        format!("{what} at byte {}", self.at)
    }

    /// The next byte that is no white space, not taken.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += found as usize;
        found
    }

    fn value(&mut self, depth: usize) -> Result<Json, String> {
        if depth > 200 {
            return Err(self.wrong("nested too deeply"));
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, String> {
        let mut members = Vec::new();
        self.at += 1;
        while !self.take(b'}') {
            if !members.is_empty() && !self.take(b',') {
                return Err(self.wrong("no comma"));
            }
            self.peek();
            let name = self.string()?;
            if !self.take(b':') {
                return Err(self.wrong("no colon"));
            }
            members.push((name, self.value(depth + 1)?));
        }
        Ok(Json::Object(members))
    }

    fn list(&mut self, depth: usize) -> Result<Json, String> {
        let mut items = Vec::new();
        self.at += 1;
        while !self.take(b']') {
            if !items.is_empty() && !self.take(b',') {
                return Err(self.wrong("no comma"));
            }
            items.push(self.value(depth + 1)?);
        }
        Ok(Json::List(items))
    }

    fn word(&mut self) -> Result<Json, String> {
        for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wrong("no value"))
    }

    fn number(&mut self) -> Result<Json, String> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !"+-.0123456789eE".contains(c)).unwrap_or(rest.len());
        let spelled = &rest[..end];
        let digits = spelled.trim_start_matches('-').as_bytes();
        let leading_zero = digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit();
        let bare_point = spelled.replace('E', "e").contains(".e") || spelled.ends_with('.');
        if leading_zero || bare_point || !digits.first().is_some_and(u8::is_ascii_digit) || spelled.parse::<f64>().is_err() {
            return Err(self.wrong("no number"));
        }
        self.at += end;
        Ok(Json::Number(spelled.to_string()))
    }

    fn string(&mut self) -> Result<String, String> {
        if self.text.as_bytes().get(self.at) != Some(&b'"') {
            return Err(self.wrong("no string"));
        }
        let mut out = String::new();
        let mut rest = self.text[self.at + 1..].char_indices();
        while let Some((i, c)) = rest.next() {
            match c {
                '"' => {
                    self.at += i + 2;
                    return Ok(out);
                }
                '\\' => match rest.next().map(|(_, c)| c) {
                    Some('u') => {
                        let mut unit = hex(&mut rest).ok_or("no four hexadecimal digits")?;
                        if (0xd800..0xdc00).contains(&unit) {
                            let low = rest.next().zip(rest.next()).and_then(|_| hex(&mut rest)).unwrap_or(0);
                            unit = 0x10000 + ((unit - 0xd800) << 10) + low.wrapping_sub(0xdc00);
                        }
                        out.push(char::from_u32(unit).ok_or("half of a surrogate pair")?);
                    }
                    Some('b') => out.push('\u{8}'),
                    Some('f') => out.push('\u{c}'),
                    Some('n') => out.push('\n'),
                    Some('r') => out.push('\r'),
                    Some('t') => out.push('\t'),
                    Some(c @ ('"' | '\\' | '/')) => out.push(c),
                    _ => return Err(self.wrong("an unknown escape")),
                },
                c if c < ' ' => return Err(self.wrong("a control character in a string")),
                c => out.push(c),
            }
        }
        Err(self.wrong("a string without an end"))
    }
}

fn hex(rest: &mut std::str::CharIndices) -> Option<u32> {
    (0..4).try_fold(0, |value, _| Some(value << 4 | rest.next()?.1.to_digit(16)?))
}
