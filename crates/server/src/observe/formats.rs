//! The two text formats in which Prometheus and others read figures.

use std::collections::HashSet;

use axum::http::{HeaderMap, header};
use mediatype::{MediaType, MediaTypeList, Name, ReadParams, names};

/// The format of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus, version 0.0.4, which everything reads.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The value of `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// OpenMetrics for clients that ask for it by name and do not prefer text; text for all others.
    pub fn wanted(headers: &HeaderMap) -> Self {
        const OPEN_METRICS: Name<'static> = Name::new_unchecked("openmetrics-text");
        let best = |ty: Name<'_>, subty: Name<'_>| {
            let values = headers.get_all(header::ACCEPT).iter();
            let values = values.filter_map(|value| value.to_str().ok());
            let ranges = values.flat_map(MediaTypeList::new).filter_map(Result::ok);
            let ranges = ranges.filter(|range| range.ty == ty && range.subty == subty);
            ranges.map(|range| quality(&range)).reduce(f32::max)
        };
        let text = best(names::TEXT, names::PLAIN);
        match best(names::APPLICATION, OPEN_METRICS) {
            Some(quality) if quality > 0.0 && text.is_none_or(|text| quality >= text) => {
                Self::OpenMetrics
            }
            _ => Self::Text,
        }
    }
}

fn quality(range: &MediaType<'_>) -> f32 {
    range.get_param(names::Q).and_then(|q| q.as_str().parse().ok()).unwrap_or(1.0)
}

/// Converts OpenMetrics to the older text format: there, the description of a counter has its full
/// name as well, and there are no units and no end marker.
pub(super) fn to_text(open_metrics: &str) -> String {
    let types = open_metrics.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let counters: HashSet<&str> = types.filter_map(|rest| rest.strip_suffix(" counter")).collect();
    let mut text = String::with_capacity(open_metrics.len() + 1024);
    let kept = |line: &&str| *line != "# EOF" && !line.starts_with("# UNIT ");
    for line in open_metrics.lines().filter(kept) {
        // As in `# HELP name text`.
        let of_counter = line.strip_prefix("# ").and_then(|rest| {
            let (kind, rest) = rest.split_once(' ')?;
            let (name, rest) = rest.split_once(' ')?;
            counters.contains(name).then_some(["# ", kind, " ", name, "_total ", rest])
        });
        match of_counter {
            Some(parts) => text.extend(parts),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_open_metrics_gets_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, wanted) in [
            (&[][..], Format::Text),
            (&["*/*"], Format::Text),
            (&["text/plain"], Format::Text),
            (&[prometheus], Format::OpenMetrics),
            (&["application/openmetrics-text"], Format::OpenMetrics),
            (&["text/plain;q=0.5", "application/openmetrics-text"], Format::OpenMetrics),
            (&["text/plain", "application/openmetrics-text;q=0.5"], Format::Text),
            (&["application/openmetrics-text;q=0"], Format::Text),
            (&["text/html, not a type"], Format::Text),
        ] {
            let headers = accept.iter().map(|value| (header::ACCEPT, value.parse().unwrap()));
            assert_eq!(Format::wanted(&headers.collect()), wanted, "{accept:?}");
        }
    }

    #[test]
    fn only_counters_change_their_names() {
        let open_metrics = "\
# HELP a_b What \\n there # TYPE is.
# TYPE a_b counter
# UNIT a_b b
a_b_total{x=\"# EOF\"} 1
# HELP a_bc A gauge.
# TYPE a_bc gauge
a_bc 2
# EOF
";
        let text = "\
# HELP a_b_total What \\n there # TYPE is.
# TYPE a_b_total counter
a_b_total{x=\"# EOF\"} 1
# HELP a_bc A gauge.
# TYPE a_bc gauge
a_bc 2
";
        assert_eq!(to_text(open_metrics), text);
    }
}
