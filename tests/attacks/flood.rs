//! Requests on one HTTP/2 connection, again and again: as soon as one is answered, it is asked once
//! more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::JoinHandle;

use super::client::{Client, Event, Request};
use super::{becomes, ms};
use crate::support::Service;

/// A flood. Its connection is closed when it ends.
pub(crate) struct Flood {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    thread: JoinHandle<Counts>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) by_status: BTreeMap<u16, usize>,
    /// Refusals that did not say when to ask again.
    pub(crate) without_retry_after: usize,
    /// Streams that were reset, and whether the connection was closed.
    pub(crate) resets: usize,
    pub(crate) is_closed: bool,
}

impl Flood {
    /// n streams at once, of these requests in turn.
    pub(crate) fn begin(service: &Service, requests: Vec<Request>, streams: usize) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut client = Client::begin(service.connect(), true);
        let (stops, answers) = (stop.clone(), answered.clone());
        let thread = std::thread::spawn(move || {
            let mut counts = Counts::default();
            let mut next = requests.iter().cycle();
            let mut open = 0;
            while !stops.load(Relaxed) {
                for request in next.by_ref().take(streams - open) {
                    client.ask(request);
                }
                open = streams;
                let Ok(events) = client.events() else {
                    counts.is_closed = true;
                    break;
                };
                for (_, event) in events {
                    match event {
                        Event::Head(head) => {
                            *counts.by_status.entry(head.status).or_default() += 1;
                            let must_say = head.status == 429 && head.retry_after.is_none();
                            counts.without_retry_after += usize::from(must_say);
                            answers.fetch_add(1, Relaxed);
                        }
                        Event::End => open -= 1,
                        Event::Reset => (open, counts.resets) = (open - 1, counts.resets + 1),
                        Event::Data(_) => {}
                    }
                }
            }
            counts
        });
        Self { stop, answered, thread }
    }

    /// Waits for its first answer.
    pub(crate) fn once_answered(self) -> Self {
        becomes("the flood is answered", 5000, || self.answered.load(Relaxed) > 0);
        self
    }

    /// Lets it run for a while.
    pub(crate) fn runs(self, milliseconds: u64) -> Self {
        std::thread::sleep(ms(milliseconds));
        self
    }

    /// Closes its connection, whatever is under way.
    pub(crate) fn end(self) -> Counts {
        self.stop.store(true, Relaxed);
        self.thread.join().expect("the flood does not panic")
    }
}
