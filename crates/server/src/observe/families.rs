//! All metrics: their names, and where their numbers come from. `docs/operating.md` has the same
//! list for people.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::counter::{Counter, Durations};
use super::engine_figures::COUNTERS;
use super::family::{Family, Labels, Samples, counts, gauges, histograms, only};
use super::labels::{METHOD_COUNT, STATUS_COUNT, method_name, status_name};
use super::thread_figures::ThreadFigures;
use super::{
    EngineFigures, Histogram, Observer, ReloadFigures, Reloadable, SourceFigures, process,
};
use crate::traces::TraceFigures;
use kindred::filters::FilterCounts;
use kindred::queue::QueueStatistics;
use scheduler::account::{Memory, Pool};
use scheduler::{BATCH_SIZE_BOUNDS, Counted, LaneStatistics, PASS_SECONDS_BOUNDS, ReplicaState};

/// Figures that are known rather than counted.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The engine that searches.
    pub engine: &'a str,
    /// Whether the service is ready, as `/health/ready` says.
    pub is_ready: bool,
    /// The memory of requests and answers.
    pub memory: &'a Memory,
    /// The counts of spans; `None` if nothing is traced.
    pub traces: Option<TraceFigures>,
}

/// All families, in the order in which they are written.
pub(super) fn all(observer: &Observer, known: Known<'_>, models: &[EngineFigures]) -> Vec<Family> {
    let mut families = of_build(known);
    let threads: Vec<_> = observer.threads().iter().map(|(_, figures)| figures.clone()).collect();
    families.extend(of_requests(&threads, observer.routes));
    families.extend(of_connections(observer));
    families.extend(of_memory(known.memory));
    families.extend(of_models(models));
    families.extend(of_sources(models));
    families.extend(of_engines(models));
    families.extend(of_reloads(observer.reloads()));
    families.extend(known.traces.map(of_traces).into_iter().flatten());
    families.extend(process::families());
    families
}

fn of_build(known: Known<'_>) -> Vec<Family> {
    let labels = vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("engine", known.engine.to_owned()),
        ("features", crate::logging::features().to_owned()),
    ];
    let help = "Version, engine and features of the program; always 1";
    vec![
        gauges("kindred_build_info", help, vec![(labels, 1.0)]),
        gauges(
            "kindred_ready",
            "1 if probes are answered correctly, as for /health/ready, else 0",
            only(f64::from(u8::from(known.is_ready))),
        ),
    ]
}

fn of_requests(threads: &[Arc<ThreadFigures>], routes: &[&str]) -> Vec<Family> {
    let sum = |of: fn(&ThreadFigures) -> &Counter| threads.iter().map(|one| of(one).get()).sum();
    let histogram_of =
        |of: fn(&ThreadFigures) -> &Durations| Histogram::of(threads.iter().map(|one| of(one)));
    let abandoned: u64 = sum(|one| &one.abandoned);
    let (mut requests, mut answered) = (Vec::new(), 0);
    for (route, label) in routes.iter().enumerate() {
        for method in 0..METHOD_COUNT {
            for status in 0..STATUS_COUNT {
                let of_one = |one: &Arc<ThreadFigures>| one.requests(route, method, status);
                let number: u64 = threads.iter().map(of_one).sum();
                answered += number;
                if number > 0 {
                    let labels = vec![
                        ("route", (*label).to_owned()),
                        ("method", method_name(method).to_owned()),
                        ("status", status_name(status)),
                    ];
                    requests.push((labels, number));
                }
            }
        }
    }
    // Read after the counts that are subtracted from it, so that it can't be less than them.
    let begun: u64 = sum(|one| &one.begun);
    let in_flight = begun.saturating_sub(answered + abandoned);
    let by_route = routes.iter().enumerate().filter_map(|(route, label)| {
        let histogram = Histogram::of(threads.iter().map(|one| &one.whole[route]));
        let labels = vec![("route", (*label).to_owned())];
        (histogram.count() > 0).then_some((labels, histogram))
    });
    let stage_seconds = sum(|one| &one.stage_nanoseconds) as f64 / 1e9;
    vec![
        counts("kindred_requests", "Requests answered", requests),
        histograms(
            "kindred_request_seconds",
            "Request latency, from the request head to the answer",
            by_route.collect(),
        ),
        histograms(
            "kindred_request_queue_seconds",
            "Queueing time before the first pass, for requests that search",
            only(histogram_of(|one| &one.queue)),
        ),
        histograms(
            "kindred_request_engine_seconds",
            "Time in engine passes, for requests that search",
            only(histogram_of(|one| &one.engine)),
        ),
        histograms(
            "kindred_request_encode_seconds",
            "Time to encode the answer, for requests that search",
            only(histogram_of(|one| &one.encode)),
        ),
        gauges("kindred_requests_in_flight", "Requests in progress", only(in_flight as f64)),
        counts(
            "kindred_requests_abandoned",
            "Requests whose clients disconnected before the answer",
            only(abandoned),
        ),
        Family {
            name: "kindred_stage_work_seconds",
            help: "Estimated CPU time of requests outside the engine, without short GETs",
            samples: Samples::Sum(stage_seconds),
        },
        counts(
            "kindred_response_bytes",
            "Bytes of response bodies",
            only(sum(|one| &one.response_bytes)),
        ),
    ]
}

fn of_connections(observer: &Observer) -> [Family; 2] {
    let open = observer.connections_open() as f64;
    let opened = observer.connections_opened.load(Ordering::Relaxed);
    [
        gauges("kindred_connections", "Open connections", only(open)),
        counts("kindred_connections_opened", "Connections accepted", only(opened)),
    ]
}

fn of_memory(memory: &Memory) -> [Family; 3] {
    let by_pool = |of: fn(&Memory, Pool) -> u64| {
        Pool::ALL.map(|pool| (vec![("pool", pool.name().to_owned())], of(memory, pool)))
    };
    let bytes = |of| by_pool(of).map(|(labels, bytes)| (labels, bytes as f64)).to_vec();
    [
        gauges(
            "kindred_memory_bytes",
            "Memory currently reserved for requests and answers",
            bytes(Memory::taken),
        ),
        gauges(
            "kindred_memory_capacity_bytes",
            "Limit of the memory for requests and answers",
            bytes(Memory::capacity),
        ),
        counts(
            "kindred_memory_counted_bytes",
            "Total memory ever reserved for requests and answers",
            by_pool(Memory::counted).to_vec(),
        ),
    ]
}

fn named(model: &EngineFigures) -> Labels {
    vec![("model", model.model.clone())]
}

fn by_model<V>(models: &[EngineFigures], of: impl Fn(&EngineFigures) -> V) -> Vec<(Labels, V)> {
    models.iter().map(|model| (named(model), of(model))).collect()
}

fn of_sources(models: &[EngineFigures]) -> [Family; 3] {
    let by_source = |of: fn(&SourceFigures) -> f64| -> Vec<(Labels, f64)> {
        let each = models.iter().flat_map(|model| {
            let label = |one: &SourceFigures| {
                vec![("model", model.model.clone()), ("source", one.name.clone())]
            };
            model.sources.iter().map(move |one| (label(one), of(one)))
        });
        each.collect()
    };
    [
        gauges(
            "kindred_source_behind",
            "Bytes or messages of a followed system that were not applied at the last report",
            by_source(|one| one.behind as f64),
        ),
        gauges(
            "kindred_source_behind_seconds",
            "Time by which the table may be behind a system that it follows",
            by_source(|one| one.behind_by.as_secs_f64()),
        ),
        gauges(
            "kindred_source_retained_bytes",
            "Bytes that a followed system keeps for the table's follower: WAL of PostgreSQL's slot",
            by_source(|one| one.retained as f64),
        ),
    ]
}

fn of_models(models: &[EngineFigures]) -> [Family; 16] {
    let jobs = |of: fn(&Counted) -> u64| by_model(models, |one| of(&one.queue.counted));
    let sets = |of: fn(&FilterCounts) -> usize| by_model(models, |one| of(&one.filters) as f64);
    let filters = |of: fn(&FilterCounts) -> u64| by_model(models, |one| of(&one.filters));
    let capacity = |one: &EngineFigures| f64::from(one.queue.counted.capacity_slots);
    [
        gauges("kindred_model_rows", "Number of rows", by_model(models, |one| one.rows as f64)),
        gauges(
            "kindred_model_dimensions",
            "Number of components per row",
            by_model(models, |one| one.dim as f64),
        ),
        gauges(
            "kindred_model_bytes",
            "Size of the vectors and norms",
            by_model(models, |one| one.bytes as f64),
        ),
        gauges(
            "kindred_model_damaged_files",
            "Files of the model, or that its heads need, found damaged since it was loaded",
            by_model(models, |one| one.damaged_files as f64),
        ),
        gauges(
            "kindred_attribute_index_bytes",
            "Memory of the indexes of attributes, by which sets are made",
            sets(|counts| counts.index_bytes),
        ),
        gauges(
            "kindred_filter_sets",
            "Sets of rows that are kept for filters",
            sets(|counts| counts.sets),
        ),
        gauges(
            "kindred_filter_set_bytes",
            "Memory of the sets that are kept for filters",
            sets(|counts| counts.bytes),
        ),
        gauges(
            "kindred_filter_set_capacity_bytes",
            "Limit of the memory of sets for filters",
            sets(|counts| counts.most_bytes),
        ),
        counts(
            "kindred_filter_set_hits",
            "Filters whose sets of rows were there",
            filters(|counts| counts.hits),
        ),
        counts(
            "kindred_filter_sets_made",
            "Sets of rows that were made for filters",
            filters(|counts| counts.made),
        ),
        counts(
            "kindred_filter_sets_dropped",
            "Sets of rows that made room for those of other filters",
            filters(|counts| counts.dropped),
        ),
        gauges(
            "kindred_queue_capacity_queries",
            "Queue capacity, in slots",
            by_model(models, capacity),
        ),
        counts(
            "kindred_jobs_refused",
            "Jobs shed with 429 because the queue was full",
            jobs(|all| all.refused_full),
        ),
        counts(
            "kindred_jobs_late",
            "Jobs that expired and were answered with 504",
            jobs(|all| all.deadline_passed),
        ),
        counts(
            "kindred_jobs_abandoned",
            "Jobs cancelled because their clients disconnected",
            jobs(|all| all.hung_up),
        ),
        counts(
            "kindred_jobs_failed",
            "Jobs answered with 503 because the engine failed or was missing",
            jobs(|all| all.failed + all.refused_without_device),
        ),
    ]
}

/// A value for each lane of each model: searches, full passes, classified texts and expanded texts.
fn by_lane<V>(models: &[EngineFigures], of: impl Fn(&LaneStatistics) -> V) -> Vec<(Labels, V)> {
    let of_model = |model: &EngineFigures| {
        let QueueStatistics { searches, full_passes, classifications, expansions, .. } =
            &model.queue;
        [
            ("search", searches),
            ("full_pass", full_passes),
            ("classify", classifications),
            ("expand", expansions),
        ]
        .map(|(name, lane)| {
            (vec![("model", model.model.clone()), ("lane", name.to_owned())], of(lane))
        })
    };
    models.iter().flat_map(of_model).collect()
}

/// A histogram with these bounds and one more, and these counts.
fn bounded(bounds: impl Iterator<Item = f64>, counts: &[u64], sum: f64) -> Histogram {
    let buckets = bounds.chain([f64::INFINITY]).zip(counts.iter().copied()).collect();
    Histogram { buckets, sum }
}

fn batch_sizes(lane: &LaneStatistics) -> Histogram {
    let bounds = BATCH_SIZE_BOUNDS.iter().map(|&bound| bound as f64);
    bounded(bounds, &lane.batch_sizes, lane.queries as f64)
}

fn pass_seconds(lane: &LaneStatistics) -> Histogram {
    bounded(PASS_SECONDS_BOUNDS.into_iter(), &lane.pass_seconds, lane.pass_seconds_sum)
}

fn by_state(models: &[EngineFigures]) -> Vec<(Labels, f64)> {
    let of_model = |model: &EngineFigures| {
        ReplicaState::NAMES.map(|state| {
            let replicas = model.queue.counted.replicas.iter();
            let number = replicas.filter(|one| one.name() == state).count();
            (vec![("model", model.model.clone()), ("state", state.to_owned())], number as f64)
        })
    };
    models.iter().flat_map(of_model).collect()
}

fn of_engines(models: &[EngineFigures]) -> Vec<Family> {
    let total = |of: fn(&QueueStatistics) -> u64| by_model(models, |one| of(&one.queue));
    let mut families = vec![
        gauges(
            "kindred_queue_queries",
            "Queue slots in use by queries waiting or in progress",
            by_lane(models, |lane| f64::from(lane.slots_taken)),
        ),
        counts("kindred_passes", "Engine passes", by_lane(models, |lane| lane.passes)),
        counts(
            "kindred_pass_queries",
            "Queries answered by passes",
            by_lane(models, |lane| lane.queries),
        ),
        histograms(
            "kindred_batch_queries",
            "Batch size: queries per pass",
            by_lane(models, batch_sizes),
        ),
        histograms("kindred_pass_seconds", "Duration of a pass", by_lane(models, pass_seconds)),
        counts(
            "kindred_search_work_queries",
            "Estimated work of searches, in plain queries (k = 10, all rows)",
            total(|queue| queue.searches.work),
        ),
        counts(
            "kindred_full_pass_work_components",
            "Estimated work of full passes, in components per row",
            total(|queue| queue.full_passes.work),
        ),
        counts(
            "kindred_classify_work_tokens",
            "Estimated work of classified texts, in tokens",
            total(|queue| queue.classifications.work),
        ),
        counts(
            "kindred_expand_work_queries",
            "Estimated work of expanded texts, in plain queries (k = 10, all rows)",
            total(|queue| queue.expansions.work),
        ),
        counts("kindred_engine_restarts", "Engine restarts", total(|queue| queue.counted.restarts)),
        counts(
            "kindred_jobs_asked_again",
            "Jobs asked again of another engine, because theirs failed or hung",
            total(|queue| queue.counted.asked_again),
        ),
        gauges("kindred_replicas", "Engines of the model, by state", by_state(models)),
    ];
    for (index, &(_, name, help)) in COUNTERS.iter().enumerate() {
        if COUNTERS[..index].iter().any(|(_, before, _)| *before == name) {
            continue;
        }
        let samples = models.iter().flat_map(|model| {
            let is_this = |counter: &str| {
                COUNTERS.iter().any(|(of, metric, _)| *of == counter && *metric == name)
            };
            let counted = model.queue.counted.device_counters.iter().chain(&model.texts);
            let counted = counted.filter(move |(counter, _)| is_this(counter));
            counted.map(|(_, count)| (named(model), *count))
        });
        let samples: Vec<_> = samples.collect();
        // A figure that none of these engines counts is left out, not written as 0.
        if !samples.is_empty() {
            families.push(counts(name, help, samples));
        }
    }
    families
}

fn of_reloads(reloads: &ReloadFigures) -> Vec<Family> {
    let failures = |of: Reloadable| (vec![("what", of.name().to_owned())], reloads.failures(of));
    let mut families = vec![counts(
        "kindred_reload_failures",
        "Reloads in which a model, a head, the certificate or the API keys failed",
        Reloadable::ALL.map(failures).to_vec(),
    )];
    // Without TLS there is none, and no alert about one that expires.
    families.extend(reloads.certificate_expiry().map(|expiry| {
        gauges(
            "kindred_certificate_expiry_timestamp_seconds",
            "Time until which the certificate is valid, in seconds since 1970",
            only(expiry as f64),
        )
    }));
    families
}

fn of_traces(figures: TraceFigures) -> [Family; 2] {
    let TraceFigures { exported, failed, dropped, refused } = figures;
    let outcomes = [("exported", exported), ("failed", failed), ("dropped", dropped)];
    let labelled = |(outcome, number)| (vec![("outcome", str::to_owned(outcome))], number);
    [
        counts(
            "kindred_trace_spans",
            "Spans that the collector took or did not take, or that were dropped because too many waited",
            outcomes.map(labelled).to_vec(),
        ),
        counts(
            "kindred_traces_refused",
            "Traces that callers asked for beyond traces_asked_per_second",
            only(refused),
        ),
    ]
}
