//! Simulates a service of many replicas behind a load balancer: queues, passes, balancing rules, failures and rolling
//! updates. docs/simulation.md says what the model assumes and what it leaves out.

pub mod balance;
pub mod callers;
pub mod figures;
pub mod latencies;
pub mod pass;
pub mod random;
pub mod scenario;
pub mod service;
