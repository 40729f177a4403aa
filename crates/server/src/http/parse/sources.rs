//! Positions of the systems that a table follows: in headers of changes, and in the reports of
//! followers.

use axum::http::HeaderMap;
use kindred::cut;
use kindred::live::changes::{MAX_SOURCES, SourcePosition, Sources};
use serde::Deserialize;

use super::at_most::AtMost;
use super::invalid;
use super::json::json_body;
use crate::http::ApiError;

/// The header of a change with the positions that the table has reached by it.
const SOURCE_POSITION: &str = "source-position";
/// The header of a change of the rows at one position only.
const IF_POSITION: &str = "if-position";

/// The positions in the header `Source-Position`, if there is one.
pub(in crate::http) fn positions(headers: &HeaderMap) -> Result<Sources, ApiError> {
    let Some(value) = headers.get(SOURCE_POSITION) else { return Ok(Sources::default()) };
    let text = String::from_utf8_lossy(value.as_bytes());
    text.parse().map_err(|_| invalid("Source-Position").with_found(Some(cut(text.into_owned()))))
}

/// The version and position in the header `If-Position`, if there is one.
pub(in crate::http) fn only_at(headers: &HeaderMap) -> Result<Option<(String, u64)>, ApiError> {
    let Some(value) = headers.get(IF_POSITION) else { return Ok(None) };
    let text = String::from_utf8_lossy(value.as_bytes());
    let both = version_and_position(&text).map(|(version, at)| (version.to_owned(), at));
    both.map(Some).ok_or_else(|| invalid("If-Position").with_found(Some(cut(text.into_owned()))))
}

/// `VERSION/POSITION`, as the answer to a change has them.
pub(in crate::http) fn version_and_position(text: &str) -> Option<(&str, u64)> {
    let (version, position) = text.trim().split_once('/')?;
    Some((version, position.parse().ok()?))
}

json_body! {
    /// The body of `POST /sources`.
    SourcesBody {
        sources: AtMost<SourceReport, MAX_SOURCES>,
    }
}

/// The state of a source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct SourceReport {
    pub(in crate::http) name: String,
    position: String,
    #[serde(default)]
    pub(in crate::http) behind: u64,
    #[serde(default)]
    pub(in crate::http) behind_seconds: f64,
    #[serde(default)]
    pub(in crate::http) retained: u64,
}

impl SourceReport {
    /// Everything up to here was applied.
    pub(in crate::http) fn position(&self) -> Result<SourcePosition, ApiError> {
        let invalid = |()| invalid("sources.position").with_found(Some(cut(self.position.clone())));
        self.position.parse().map_err(invalid)
    }
}

impl SourcesBody {
    /// Checks its form. Returns the reports.
    pub(in crate::http) fn check(self) -> Result<Vec<SourceReport>, ApiError> {
        let found = self.sources.as_ref().map(|sources| sources.found);
        let sources = self.sources.and_then(AtMost::all).filter(|sources| !sources.is_empty());
        let sources =
            sources.ok_or_else(|| invalid("sources").with_found(found.map(|n| n.to_string())))?;
        for source in &sources {
            source.position()?;
            if !(0.0..1e9).contains(&source.behind_seconds) {
                let found = Some(source.behind_seconds.to_string());
                return Err(invalid("sources.behind_seconds").with_found(found));
            }
        }
        Ok(sources)
    }
}
