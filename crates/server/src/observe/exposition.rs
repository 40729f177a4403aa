//! All figures as text. The Prometheus project's own library writes them; this module adds up the
//! threads' figures.

use std::collections::HashSet;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use super::families::{self, Known};
use super::family::Family;
use super::{EngineFigures, Observer};

impl Observer {
    /// Writes all figures as they are now, including those of these models' queues and engines: in
    /// OpenMetrics 1.0, or in the text format of Prometheus, version 0.0.4, which everything reads.
    pub fn write(
        &self,
        known: Known<'_>,
        models: &[EngineFigures],
        is_open_metrics: bool,
    ) -> String {
        let mut registry = Registry::default();
        let families = families::all(self, known, models);
        registry.register_collector(Box::new(Families(families)));
        let mut text = String::with_capacity(64 << 10);
        prometheus_client::encoding::text::encode(&mut text, &registry)
            .expect("a string takes all that is written");
        if is_open_metrics { text } else { to_text(&text) }
    }
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|family| family.encode(&mut encoder))
    }
}

/// Converts OpenMetrics to the older text format: there, the description of a counter has its full
/// name as well, and there are no units and no end marker.
fn to_text(open_metrics: &str) -> String {
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
    use std::sync::Arc;

    use kindred::filters::FilterCounts;
    use kindred::{Kindred, ModelStore, ReferenceEngine, Settings};
    use scheduler::account::Memory;

    use super::super::{AccessLog, ReloadFigures, Reloadable};
    use super::*;

    fn figures(name: &str) -> EngineFigures {
        let model = ModelStore::from_rows("m", 2, [("a", &[1.0, 0.0][..])]).unwrap();
        let asked = Kindred::with_engine(model.into(), Settings::default(), |model| {
            Ok(Box::new(ReferenceEngine::new(model.clone())))
        });
        let (model, queue) = (name.to_owned(), asked.unwrap().statistics());
        let (filters, texts, sources) = (FilterCounts::default(), vec![], vec![]);
        let (rows, dim, bytes, damaged_files) = (3, 2, 0, 0);
        EngineFigures { model, rows, dim, bytes, damaged_files, sources, filters, queue, texts }
    }

    #[test]
    fn a_name_can_hold_anything_and_a_histogram_adds_up() {
        let mut model = figures("quo\"te\\new\nline");
        let searches = &mut model.queue.searches;
        (searches.batch_sizes[0], searches.queries) = (2, 9);
        *searches.batch_sizes.last_mut().unwrap() = 3;
        model.queue.counted.device_counters = vec![("fallbacks", 7), ("unheard_of", 1)];
        let reloads = Arc::<ReloadFigures>::default();
        reloads.count_failure(Reloadable::Certificate);
        let observer = Observer::new(AccessLog::default(), &[], reloads.clone());
        let memory = Memory::new(1, 2);
        let known = Known { engine: "cpu", is_ready: true, memory: &memory, traces: None };
        let text = observer.write(known, std::slice::from_ref(&model), false);
        let label = r#"model="quo\"te\\new\nline""#;
        for line in [
            &format!("kindred_model_rows{{{label}}} 3.0"),
            &format!("kindred_batch_queries_bucket{{le=\"1.0\",{label},lane=\"search\"}} 2"),
            &format!("kindred_batch_queries_bucket{{le=\"+Inf\",{label},lane=\"search\"}} 5"),
            &format!("kindred_batch_queries_sum{{{label},lane=\"search\"}} 9.0"),
            &format!("kindred_scan_fallbacks_total{{{label}}} 7"),
            "# TYPE kindred_scan_fallbacks_total counter",
            "kindred_memory_capacity_bytes{pool=\"answers\"} 2000000.0",
            "kindred_ready 1.0",
            "kindred_reload_failures_total{what=\"certificate\"} 1",
            "kindred_reload_failures_total{what=\"keys\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let expiry = "kindred_certificate_expiry_timestamp_seconds";
        assert!(!text.contains(expiry), "there is no certificate");
        reloads.set_certificate_expiry(Some(4_733_510_400));
        let with_certificate = observer.write(known, &[], false);
        let line = format!("{expiry} 4733510400.0");
        assert!(with_certificate.lines().any(|found| found == line), "{with_certificate}");
        assert!(!text.contains("unheard_of"));
        // Two models are two samples of one family.
        let two = [model, figures("other")];
        let open = observer.write(known, &two, true);
        assert!(open.contains("# TYPE kindred_scan_fallbacks counter\n"), "{open}");
        assert_eq!(open.matches("# TYPE kindred_model_rows ").count(), 1);
        assert_eq!(open.matches("\nkindred_model_rows{").count(), 2);
        assert!(open.ends_with("# EOF\n"));
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
