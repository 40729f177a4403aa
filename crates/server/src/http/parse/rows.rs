//! Changes of rows: rows to put, keys or a filter of rows to delete, and which rows to list.

use std::str::FromStr;

use kindred::live::changes::Durability;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::at_most::AtMost;
use super::json::json_body;
use super::query_string::Parameters;
use super::{invalid, not_exactly_one};
use crate::http::ApiError;

/// Maximum number of rows, or of keys, of one request.
pub(in crate::http) const MAX_CHANGED_ROWS: usize = 65_536;
/// Maximum number of rows that one answer lists.
pub(in crate::http) const MAX_LISTED_ROWS: usize = 1000;
/// Number of rows that are listed by default.
const DEFAULT_LISTED_ROWS: usize = 100;

/// The fate of a batch with bad rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::http) enum OnError {
    /// Nothing of it is kept.
    #[default]
    Refuse,
    /// The good rows are kept, and the answer names the others.
    Skip,
}

/// [`Durability`] by its name in requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::http) enum NamedDurability {
    #[default]
    Synced,
    None,
}

impl From<NamedDurability> for Durability {
    fn from(named: NamedDurability) -> Self {
        match named {
            NamedDurability::Synced => Self::Synced,
            NamedDurability::None => Self::None,
        }
    }
}

/// The options of a change.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::http) struct ChangeOptions {
    pub(in crate::http) on_error: OnError,
    pub(in crate::http) durability: NamedDurability,
    pub(in crate::http) timeout_ms: Option<u64>,
}

json_body! {
    /// The body of `POST /rows`.
    RowsBody<'a> {
        #[serde(borrow)]
        rows: AtMost<&'a RawValue, MAX_CHANGED_ROWS>,
        delete: AtMost<String, MAX_CHANGED_ROWS>,
        on_error: OnError,
        durability: NamedDurability,
        timeout_ms: u64,
    }
}

impl<'a> RowsBody<'a> {
    /// Checks its form. Returns its rows as unparsed JSON, the keys to delete, and its options. Either
    /// may be empty if the other is there, or if `is_of_source`, which is a change by itself.
    pub(in crate::http) fn check(
        self,
        is_of_source: bool,
    ) -> Result<(Vec<&'a RawValue>, Vec<String>, ChangeOptions), ApiError> {
        let found = self.rows.as_ref().map(|rows| rows.found);
        let delete = keys_to_delete(self.delete)?;
        let may_be_empty = is_of_source || !delete.is_empty();
        let rows = match self.rows {
            None if may_be_empty => Some(Vec::new()),
            rows => rows.and_then(AtMost::all).filter(|rows| may_be_empty || !rows.is_empty()),
        };
        let rows = rows.ok_or_else(|| too_many("rows", found))?;
        let (on_error, durability) = (self.on_error, self.durability);
        let options = ChangeOptions {
            on_error: on_error.unwrap_or_default(),
            durability: durability.unwrap_or_default(),
            timeout_ms: self.timeout_ms,
        };
        Ok((rows, delete, options))
    }
}

fn keys_to_delete(
    given: Option<AtMost<String, MAX_CHANGED_ROWS>>,
) -> Result<Vec<String>, ApiError> {
    let found = given.as_ref().map(|keys| keys.found);
    let keys = given.map_or(Some(Vec::new()), AtMost::all);
    keys.ok_or_else(|| too_many("delete", found))
}

/// The keys of the part `delete`: a list in JSON.
pub(in crate::http) fn part_of_keys(part: &[u8]) -> Result<Vec<String>, ApiError> {
    let keys: Result<AtMost<String, MAX_CHANGED_ROWS>, _> = serde_json::from_slice(part);
    keys_to_delete(Some(keys.map_err(|_| invalid("delete"))?))
}

/// The error for no rows or keys, or too many.
fn too_many(field: &str, found: Option<usize>) -> ApiError {
    invalid(field).with_found(found.map(|found| format!("a list of {found}")))
}

/// The rows of JSON lines, which are not empty.
pub(in crate::http) fn lines(text: &str) -> Result<Vec<&str>, ApiError> {
    let lines = text.split('\n').map(str::trim).filter(|line| !line.is_empty());
    let rows: Vec<&str> = lines.clone().take(MAX_CHANGED_ROWS + 1).collect();
    match rows.len() {
        0 => {
            Err(ApiError::invalid_request("the body has no row: send one JSON object on each line"))
        }
        found if found > MAX_CHANGED_ROWS => {
            let reason = format!(
                "the body has {} rows; the maximum is {MAX_CHANGED_ROWS}: send them in parts",
                lines.count()
            );
            Err(ApiError::invalid_request(reason))
        }
        _ => Ok(rows),
    }
}

/// The parameters of a `POST /rows` whose body is JSON lines.
pub(in crate::http) fn options(query: &str) -> Result<ChangeOptions, ApiError> {
    let mut parameters = Parameters::decode(query)?;
    let on_error: Option<OnError> = parameters.take_named("on_error")?;
    let durability: Option<NamedDurability> = parameters.take_named("durability")?;
    let timeout_ms = parameters.take_parsed("timeout_ms")?;
    parameters.only(&["on_error", "durability", "timeout_ms"])?;
    Ok(ChangeOptions {
        on_error: on_error.unwrap_or_default(),
        durability: durability.unwrap_or_default(),
        timeout_ms,
    })
}

json_body! {
    /// The body of `POST /rows/delete`.
    DeleteBody {
        keys: AtMost<String, MAX_CHANGED_ROWS>,
        filter: String,
        durability: NamedDurability,
        timeout_ms: u64,
    }
}

/// The rows that are to be deleted.
#[derive(Debug)]
pub(in crate::http) enum Which {
    Keys(Vec<String>),
    Filter(String),
}

impl DeleteBody {
    /// Checks its form. Returns which rows it is about, and its options.
    pub(in crate::http) fn check(self) -> Result<(Which, ChangeOptions), ApiError> {
        let which = match (self.keys, self.filter) {
            (Some(keys), None) => {
                let found = keys.found;
                let keys = keys.all().filter(|keys| !keys.is_empty());
                Which::Keys(keys.ok_or_else(|| too_many("keys", Some(found)))?)
            }
            (None, Some(filter)) => Which::Filter(filter),
            _ => return Err(not_exactly_one("`keys` and `filter`")),
        };
        let durability = self.durability.unwrap_or_default();
        let options =
            ChangeOptions { durability, timeout_ms: self.timeout_ms, ..ChangeOptions::default() };
        Ok((which, options))
    }
}

/// The rows of a `GET /rows`.
pub(in crate::http) enum RowsRequest {
    /// The row of a key.
    Key(String),
    /// The rows that meet a filter, behind the last of the page before.
    List { filter: Option<String>, after: Option<After>, limit: usize, with_vectors: bool },
}

/// The end of a page: a position, and the number of the last row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct After {
    pub(in crate::http) position: u64,
    pub(in crate::http) row: u32,
}

impl FromStr for After {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (position, row) = text.split_once('-').unwrap_or((text, ""));
        Ok(Self { position: position.parse()?, row: row.parse()? })
    }
}

/// The parameters of `GET /rows`.
pub(in crate::http) fn rows(query: &str) -> Result<RowsRequest, ApiError> {
    let mut parameters = Parameters::decode(query)?;
    if let Some(key) = parameters.take_one("key")? {
        parameters.only(&["key"])?;
        return Ok(RowsRequest::Key(key));
    }
    let filter = parameters.take_one("filter")?;
    let after = parameters.take_parsed("after")?;
    let limit: Option<usize> = parameters.take_parsed("limit")?;
    let with_vectors = parameters.take_parsed("with_vectors")?.unwrap_or(true);
    parameters.only(&["key", "filter", "after", "limit", "with_vectors"])?;
    let limit = limit.unwrap_or(DEFAULT_LISTED_ROWS);
    if !(1..=MAX_LISTED_ROWS).contains(&limit) {
        return Err(invalid("limit").with_found(Some(limit.to_string())));
    }
    Ok(RowsRequest::List { filter, after, limit, with_vectors })
}

/// The key of a `DELETE /rows`.
pub(in crate::http) fn key(query: &str) -> Result<Option<String>, ApiError> {
    let mut parameters = Parameters::decode(query)?;
    let key = parameters.take_one("key")?;
    parameters.only(&["key"])?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_page_is_a_position_and_a_row() {
        assert_eq!("12-7".parse(), Ok(After { position: 12, row: 7 }));
        for wrong in ["", "12", "12-", "-7", "12-7-1", "a-b", "-1-3", "1-4294967296"] {
            assert!(wrong.parse::<After>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn lines_are_rows_and_too_many_are_refused_before_they_are_kept() {
        assert_eq!(lines("{}\r\n\n  {\"a\":1}\n").unwrap(), ["{}", "{\"a\":1}"]);
        assert!(lines(" \n").is_err());
        assert!(lines(&"{}\n".repeat(MAX_CHANGED_ROWS)).is_ok());
        let many = lines(&"{}\n".repeat(MAX_CHANGED_ROWS + 1)).unwrap_err().to_string();
        assert!(many.contains("65537 rows") && many.contains("in parts"), "{many}");
    }
}
