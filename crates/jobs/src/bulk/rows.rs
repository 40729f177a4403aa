//! The text and the id of each row of a piece.

use std::borrow::Cow;
use std::fmt;

use heads::json_faults;
use model_store::delimited::same_in_any_case;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Fault;
use super::formats::BulkFormat;
use super::read::{Piece, RawRow};

/// A row that was read.
pub(super) struct Row<'a> {
    pub(super) line: u64,
    pub(super) id: Id<'a>,
    /// What to answer, or why there is nothing.
    pub(super) text: Result<Cow<'a, str>, Fault>,
}

/// What tells a row from the others.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(super) enum Id<'a> {
    /// Its line, from 1.
    Line(u64),
    /// The content of a column.
    Text(Cow<'a, str>),
    /// JSON, as it was written.
    Json(&'a RawValue),
    /// It could not be read.
    Missing,
}

impl Id<'_> {
    /// As a field of CSV: of a JSON string, its content.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Line(line) => line.to_string().into(),
            Self::Text(text) => text.as_ref().into(),
            Self::Json(json) => match serde_json::from_str::<String>(json.get()) {
                Ok(text) => text.into(),
                Err(_) => json.get().into(),
            },
            Self::Missing => "".into(),
        }
    }
}

/// The rows of a piece. `column` and `id` are fields of JSON.
pub(super) fn rows<'a>(
    piece: &'a Piece,
    format: BulkFormat,
    column: &str,
    id: Option<&str>,
) -> Vec<Row<'a>> {
    let row = |raw: &'a RawRow| {
        let bytes = &piece.bytes[raw.text.clone()];
        match (&raw.fault, format) {
            (None, BulkFormat::JsonLines) => of_json(raw.line, bytes, column, id),
            _ => plain(raw, bytes, piece, id.is_some()),
        }
    };
    piece.rows.iter().map(row).collect()
}

fn plain<'a>(raw: &RawRow, bytes: &'a [u8], piece: &'a Piece, has_id: bool) -> Row<'a> {
    let id = raw.id.clone().map(|place| utf8(&piece.bytes[place]));
    let text = match &raw.fault {
        Some(fault) => Err(fault.clone()),
        None => utf8(bytes).map(Cow::Borrowed),
    };
    let (id, text) = match id {
        None if has_id => (Id::Missing, text),
        None => (Id::Line(raw.line), text),
        Some(Ok(id)) => (Id::Text(id.into()), text),
        Some(Err(fault)) => (Id::Missing, Err(fault)),
    };
    Row { line: raw.line, id, text }
}

fn utf8(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|error| {
        let detail = format!("it is not UTF-8 at byte {}; convert the file", error.valid_up_to());
        Fault { code: "not_utf8".into(), detail }
    })
}

fn of_json<'a>(line: u64, bytes: &'a [u8], column: &str, id: Option<&str>) -> Row<'a> {
    let read = utf8(bytes).and_then(|text| fields(text, column, id));
    let (found, text) = match read {
        Ok(found) => (
            id.map_or(Ok(None), |id| value(&found, id)),
            value(&found, column).and_then(|text| text_of(text, column)),
        ),
        Err(fault) => (Ok(None), Err(fault)),
    };
    let (id, text) = match (id, found) {
        (None, _) => (Id::Line(line), text),
        (Some(_), Ok(Some(found))) => (Id::Json(found), text),
        (Some(name), Ok(None)) => (Id::Missing, text.and_then(|_| Err(missing(name)))),
        (Some(_), Err(fault)) => (Id::Missing, text.and(Err(fault))),
    };
    Row { line, id, text }
}

fn missing(field: &str) -> Fault {
    Fault { code: "invalid_request".into(), detail: format!("it has no field `{field}`") }
}

fn text_of<'a>(found: Option<&'a RawValue>, column: &str) -> Result<Cow<'a, str>, Fault> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let raw = found.ok_or_else(|| missing(column))?;
    let text = serde_json::from_str::<Text<'a>>(raw.get());
    text.map(|Text(text)| text).map_err(|_| Fault {
        code: "invalid_value".into(),
        detail: format!("`{column}` must be a string"),
    })
}

/// A field of a line that may be the text or the id: its name and its value.
type Field<'a> = (Cow<'a, str>, &'a RawValue);

/// The value of the field with this name; of one whose name differs in case, if none has exactly
/// this.
fn value<'a>(fields: &[Field<'a>], wanted: &str) -> Result<Option<&'a RawValue>, Fault> {
    let wrong = |detail: String| Err(Fault { code: "invalid_request".into(), detail });
    let mut exact = fields.iter().filter(|(name, _)| name == wanted);
    let mut alike = fields.iter().filter(|(name, _)| same_in_any_case(name, wanted));
    match (exact.next(), exact.next(), alike.next(), alike.next()) {
        (Some(_), Some(_), ..) => wrong(format!("it has the field `{wanted}` twice")),
        (Some((_, only)), ..) | (None, _, Some((_, only)), None) => Ok(Some(only)),
        (None, _, Some((first, _)), Some((second, _))) => wrong(format!(
            "`{wanted}` may be its field `{first}` or its field `{second}`; rename one"
        )),
        (None, _, None, _) => Ok(None),
    }
}

fn fields<'a>(line: &'a str, column: &str, id: Option<&str>) -> Result<Vec<Field<'a>>, Fault> {
    struct Object<'n> {
        column: &'n str,
        id: Option<&'n str>,
    }

    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

    impl<'de> Visitor<'de> for Object<'_> {
        type Value = Vec<Field<'de>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "an object with the field `{}`", self.column)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
                let is_id = |id| same_in_any_case(&key, id);
                if !same_in_any_case(&key, self.column) && !self.id.is_some_and(is_id) {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                found.push((key, map.next_value::<&'de RawValue>()?));
            }
            Ok(found)
        }
    }

    let mut reader = serde_json::Deserializer::from_str(line);
    let read = reader.deserialize_map(Object { column, id });
    let read = read.and_then(|found| reader.end().map(|()| found));
    read.map_err(|error| {
        let detail = json_faults::of_line(&error);
        let cure = match json_faults::cure(line, &error) {
            Some(cure) => format!("; {cure}"),
            None if line.trim_start().starts_with('[') => {
                "; if the file is one array, write an object in each line: jq -c '.[]' FILE"
                    .to_owned()
            }
            None => String::new(),
        };
        Fault { code: "not_json".into(), detail: format!("it is not JSON: {detail}{cure}") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (String, Result<String, (Cow<'static, str>, String)>) {
        let row = of_json(7, line.as_bytes(), "text", Some("id"));
        let id = serde_json::to_string(&row.id).unwrap();
        let text = row.text.map(Cow::into_owned).map_err(|fault| (fault.code, fault.detail));
        (id, text)
    }

    #[test]
    fn json_gives_text_and_id_as_they_are() {
        for (line, id, text) in [
            (r#"{"text": "a \"b\" \u00e4", "id": 1e400}"#, "1e400", "a \"b\" ä"),
            (
                r#"{"x": [{"text": "no"}], "id": {"a": [1]}, "text": "", "y": null}"#,
                r#"{"a": [1]}"#,
                "",
            ),
            (r#" { "id" : "\u0041" , "te\u0078t" : "last" } "#, r#""\u0041""#, "last"),
            (r#"{"ID": 1, "Text": "a", "TEXT": "b", "text": "c"}"#, "1", "c"),
            (r#"{"Id": 1, "TEXT": "b"}"#, "1", "b"),
        ] {
            assert_eq!(read(line), (id.to_owned(), Ok(text.to_owned())), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_with_json_is_said() {
        for (line, id, code, part) in [
            ("", "null", "not_json", "EOF while parsing a value at column 0"),
            ("{\"id\": 1, \"text\": \"a\"", "null", "not_json", "EOF while parsing an object"),
            (
                "{\"id\": 1, \"text\": \"a\"} x",
                "null",
                "not_json",
                "trailing characters at column 24",
            ),
            ("\"a\"", "null", "not_json", "an object with the field `text`"),
            ("[{\"text\": \"a\"}]", "null", "not_json", "in each line: jq -c '.[]' FILE"),
            ("{\"id\": 1, 'text': 'a'}", "null", "not_json", "JSON has double quotes"),
            ("{\"text\": NaN, \"id\": 1}", "null", "not_json", "no NaN and no infinities"),
            ("{\"id\": 1}", "1", "invalid_request", "it has no field `text`"),
            (
                "{\"id\": 1, \"text\": \"a\", \"text\": \"b\"}",
                "1",
                "invalid_request",
                "it has the field `text` twice",
            ),
            ("{\"text\": \"a\"}", "null", "invalid_request", "it has no field `id`"),
            ("{\"Text\": \"a\", \"TEXT\": \"b\", \"id\": 1}", "1", "invalid_request", "`Text`"),
            ("{\"text\": \"a\", \"ID\": 1, \"Id\": 2}", "null", "invalid_request", "`ID` or"),
            ("{\"id\": 1, \"text\": 2}", "1", "invalid_value", "`text` must be a string"),
            ("{\"id\": 1, \"text\": \"\\ud800\"}", "1", "invalid_value", "`text` must be a string"),
        ] {
            let (found, text) = read(line);
            let (found_code, detail) = text.unwrap_err();
            assert_eq!((&*found, &*found_code), (id, code), "{line}: {detail}");
            assert!(detail.contains(part), "{line}: {detail}");
        }
        let fault = of_json(1, b"{\"text\": \"\xff\"}", "text", None).text.unwrap_err();
        assert_eq!(fault.code, "not_utf8");
        assert!(fault.detail.contains("at byte 10"), "{}", fault.detail);
    }

    #[test]
    fn ids_in_csv_are_what_they_say() {
        let json = |json| Id::Json(serde_json::from_str(json).unwrap());
        for (id, text) in [
            (Id::Line(3), "3"),
            (Id::Text("a b".into()), "a b"),
            (json("\"a\\n\""), "a\n"),
            (json("1.50"), "1.50"),
            (Id::Missing, ""),
        ] {
            assert_eq!(id.text(), text);
        }
    }
}
