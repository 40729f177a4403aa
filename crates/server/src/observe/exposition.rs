//! All figures as text. The Prometheus project's own library writes them; this module adds up the
//! threads' figures.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use super::families::{self, Known};
use super::family::Family;
use super::formats::to_text;
use super::{EngineFigures, Format, Observer};

impl Observer {
    /// Writes all figures as they are now, including those of these models' queues and engines.
    pub fn write(&self, known: Known<'_>, models: &[EngineFigures], format: Format) -> String {
        let mut registry = Registry::default();
        let families = families::all(self, known, models);
        registry.register_collector(Box::new(Families(families)));
        let mut text = String::with_capacity(64 << 10);
        prometheus_client::encoding::text::encode(&mut text, &registry)
            .expect("a string takes all that is written");
        match format {
            Format::OpenMetrics => text,
            Format::Text => to_text(&text),
        }
    }
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|family| family.encode(&mut encoder))
    }
}

#[cfg(test)]
mod tests {
    use kindred::{Kindred, ModelStore, ReferenceEngine, Settings};
    use scheduler::account::Memory;

    use super::super::AccessLog;
    use super::*;

    fn figures(name: &str) -> EngineFigures {
        let model = ModelStore::from_rows("m", 2, [("a", &[1.0, 0.0][..])]).unwrap();
        let asked = Kindred::with_engine(model.into(), Settings::default(), |model| {
            Ok(Box::new(ReferenceEngine::new(model.clone())))
        });
        let (model, queue) = (name.to_owned(), asked.unwrap().statistics());
        EngineFigures { model, rows: 3, dim: 2, bytes: 0, damaged_files: 0, queue, texts: vec![] }
    }

    #[test]
    fn a_name_can_hold_anything_and_a_histogram_adds_up() {
        let mut model = figures("quo\"te\\new\nline");
        let searches = &mut model.queue.searches;
        (searches.batch_sizes[0], searches.queries) = (2, 9);
        *searches.batch_sizes.last_mut().unwrap() = 3;
        model.queue.counted.device_counters = vec![("fallbacks", 7), ("unheard_of", 1)];
        let observer = Observer::new(AccessLog::default(), &[]);
        let memory = Memory::new(1, 2);
        let known = Known { engine: "cpu", is_ready: true, memory: &memory, traces: None };
        let text = observer.write(known, std::slice::from_ref(&model), Format::Text);
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
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("unheard_of"));
        // Two models are two samples of one family.
        let two = [model, figures("other")];
        let open = observer.write(known, &two, Format::OpenMetrics);
        assert!(open.contains("# TYPE kindred_scan_fallbacks counter\n"), "{open}");
        assert_eq!(open.matches("# TYPE kindred_model_rows ").count(), 1);
        assert_eq!(open.matches("\nkindred_model_rows{").count(), 2);
        assert!(open.ends_with("# EOF\n"));
    }
}
