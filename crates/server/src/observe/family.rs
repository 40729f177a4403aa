//! The metrics of one name, and how they are written.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;

use super::Histogram;

/// The metrics of one name.
#[derive(Debug)]
pub(super) struct Family {
    /// The name, without the `_total` that counters get.
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) samples: Samples,
}

/// Labels and values. All values are of one kind.
#[derive(Debug)]
pub(super) enum Samples {
    Counts(Vec<(Labels, u64)>),
    /// A count that need not be whole.
    Sum(f64),
    Gauges(Vec<(Labels, f64)>),
    Histograms(Vec<(Labels, Histogram)>),
}

pub(super) type Labels = Vec<(&'static str, String)>;

pub(super) fn counts(
    name: &'static str,
    help: &'static str,
    samples: Vec<(Labels, u64)>,
) -> Family {
    Family { name, help, samples: Samples::Counts(samples) }
}

pub(super) fn gauges(
    name: &'static str,
    help: &'static str,
    samples: Vec<(Labels, f64)>,
) -> Family {
    Family { name, help, samples: Samples::Gauges(samples) }
}

pub(super) fn histograms(
    name: &'static str,
    help: &'static str,
    samples: Vec<(Labels, Histogram)>,
) -> Family {
    Family { name, help, samples: Samples::Histograms(samples) }
}

/// The only sample of a family, without labels.
pub(super) fn only<V>(value: V) -> Vec<(Labels, V)> {
    vec![(Labels::new(), value)]
}

impl Family {
    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let kind = match self.samples {
            Samples::Counts(_) | Samples::Sum(_) => MetricType::Counter,
            Samples::Gauges(_) => MetricType::Gauge,
            Samples::Histograms(_) => MetricType::Histogram,
        };
        let mut metric = encoder.encode_descriptor(self.name, self.help, None, kind)?;
        const NO_EXEMPLAR: Option<&Exemplar<NoLabelSet, f64>> = None;
        match &self.samples {
            Samples::Counts(samples) => {
                each(&mut metric, samples, |one, count| one.encode_counter(count, NO_EXEMPLAR))
            }
            Samples::Sum(sum) => metric.encode_counter(sum, NO_EXEMPLAR),
            Samples::Gauges(samples) => {
                each(&mut metric, samples, |one, value| one.encode_gauge(value))
            }
            Samples::Histograms(samples) => each(&mut metric, samples, |one, histogram| {
                let (sum, count) = (histogram.sum, histogram.count());
                one.encode_histogram::<NoLabelSet>(sum, count, &histogram.buckets, None)
            }),
        }
    }
}

fn each<V>(
    metric: &mut MetricEncoder<'_>,
    samples: &[(Labels, V)],
    encode: impl Fn(&mut MetricEncoder<'_>, &V) -> fmt::Result,
) -> fmt::Result {
    samples.iter().try_for_each(|(labels, value)| {
        if labels.is_empty() {
            encode(metric, value)
        } else {
            encode(&mut metric.encode_family(labels)?, value)
        }
    })
}
