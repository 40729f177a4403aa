//! What the system says that a request took, and what the service says that it accounted for it.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::ops::Sub;
use std::time::Duration;

use super::asked::Asked;
use crate::support::Service;

/// What a request takes, or what was accounted for it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Cost {
    /// CPU time of the engine's threads, in nanoseconds.
    pub(crate) engine: f64,
    /// CPU time of all other threads, in nanoseconds.
    pub(crate) outside: f64,
    /// Bytes.
    pub(crate) memory: f64,
}

/// What the service has accounted so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Accounted {
    /// Of searches, in plain queries.
    pub(crate) searches: f64,
    /// Of full passes, in components of a row.
    pub(crate) full_passes: f64,
    /// Of classified texts, in tokens.
    pub(crate) classified: f64,
    /// Of stages outside the engine, in nanoseconds.
    pub(crate) stages: f64,
    /// In both pools, in bytes.
    pub(crate) memory: f64,
}

impl Sub for Accounted {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            searches: self.searches - before.searches,
            full_passes: self.full_passes - before.full_passes,
            classified: self.classified - before.classified,
            stages: self.stages - before.stages,
            memory: self.memory - before.memory,
        }
    }
}

/// A service that nobody else asks.
pub(crate) struct Measured {
    pub(crate) service: Service,
    /// By their ids.
    is_engine: HashMap<String, bool>,
}

impl Measured {
    pub(crate) fn new(service: Service) -> Self {
        Self { service, is_engine: HashMap::new() }
    }

    fn process(&self, file: &str) -> String {
        format!("/proc/{}/{file}", self.service.child.id())
    }

    /// CPU time so far, once all threads sleep: what is left of a request is done behind its
    /// answer.
    fn cpu(&mut self) -> Cost {
        // The queue's clock ticks.
        self.settled(100, Duration::from_millis(1), 20_000.0)
    }

    /// Waits until nothing is done in the background: as long as tables are derived, say.
    pub(crate) fn rest(&mut self) {
        self.settled(300, Duration::from_millis(100), 5e6);
    }

    /// CPU time so far, once less than `most` nanoseconds of it come in a pause, or after so many
    /// pauses.
    fn settled(&mut self, pauses: usize, pause: Duration, most: f64) -> Cost {
        let mut last = self.cpu_now();
        for _ in 0..pauses {
            std::thread::sleep(pause);
            let now = self.cpu_now();
            let more = now.engine + now.outside - last.engine - last.outside;
            last = now;
            if more < most {
                break;
            }
        }
        last
    }

    fn cpu_now(&mut self) -> Cost {
        let mut cost = Cost::default();
        let threads = fs::read_dir(self.process("task")).expect("the service runs");
        for thread in threads.flatten() {
            let id = thread.file_name().into_string().expect("a number");
            // A thread may end meanwhile.
            let read = |file: &str| fs::read_to_string(thread.path().join(file));
            let (Ok(times), Ok(name)) = (read("schedstat"), read("comm")) else { continue };
            let is_engine = *self.is_engine.entry(id).or_insert_with(|| {
                name.starts_with("kindred-engine") || name.starts_with("kindred-scan")
            });
            let on_cpu: f64 = times.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0);
            if is_engine {
                cost.engine += on_cpu;
            } else {
                cost.outside += on_cpu;
            }
        }
        cost
    }

    /// A line of `/proc/PID/status`, in bytes.
    fn memory(&self, name: &str) -> f64 {
        let status = fs::read_to_string(self.process("status")).expect("the service runs");
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kibibytes.unwrap_or_else(|| panic!("{name} of {status}")) * 1024.0
    }

    /// What it takes, and the answer.
    pub(crate) fn take(&mut self, asked: &Asked) -> (Cost, Reply) {
        let before = self.cpu();
        // From now on the highest resident memory is that of this request.
        fs::write(self.process("clear_refs"), "5").expect("our own process");
        let resident = self.memory("VmRSS:");
        let reply = self.ask(asked);
        let after = self.cpu();
        let cost = Cost {
            engine: after.engine - before.engine,
            outside: after.outside - before.outside,
            memory: self.memory("VmHWM:") - resident,
        };
        (cost, reply)
    }

    /// What the service has accounted so far.
    pub(crate) fn accounted(&self) -> Accounted {
        let text = self.service.get("/metrics");
        let sum = |name: &str| {
            let lines = text.text().lines().filter(|line| line.starts_with(name));
            lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum::<f64>()
        };
        Accounted {
            // The terms of a text are searched for, by the same engine.
            searches: sum("kindred_search_work_queries_total")
                + sum("kindred_expand_work_queries_total"),
            full_passes: sum("kindred_full_pass_work_components_total"),
            classified: sum("kindred_classify_work_tokens_total"),
            stages: sum("kindred_stage_work_seconds_total") * 1e9,
            memory: sum("kindred_memory_counted_bytes_total"),
        }
    }

    /// Sends a request on a connection of its own.
    pub(crate) fn ask(&self, asked: &Asked) -> Reply {
        let Asked { method, target, accept, array, positions, .. } = asked;
        let body = asked.bytes();
        let mut head =
            format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        if let Some(accept) = accept {
            head += &format!("Accept-Encoding: {accept}\r\n");
        }
        if let Some((_, wants)) = array {
            head += "Content-Type: application/x-npy\r\n";
            head += if *wants { "Accept: application/x-npy\r\n" } else { "" };
        }
        if !positions.is_empty() {
            head += &format!("Source-Position: {positions}\r\n");
        }
        if *method == "POST" {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        let mut connection = self.service.connect();
        connection.write_all(format!("{head}\r\n").as_bytes()).expect("the head can be sent");
        connection.write_all(body).expect("the body can be sent");
        let mut reply = Vec::new();
        connection.read_to_end(&mut reply).expect("an answer comes");
        let status = reply.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok());
        let status = status.and_then(|digits| digits.parse().ok()).expect("a status");
        Reply { status, bytes: reply }
    }
}

/// What came back.
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Head and body.
    pub(crate) bytes: Vec<u8>,
}
