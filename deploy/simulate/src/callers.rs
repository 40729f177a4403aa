//! Callers of very different weight, and the connections that pin them to replicas.

use crate::random::Random;

/// Callers whose shares of the requests follow Zipf's law, each with connections to one replica for good: what a
/// balancer of connections does, such as a ClusterIP of Kubernetes.
#[derive(Debug, Clone)]
pub struct Callers {
    /// Sums of the shares up to each caller.
    cumulative: Vec<f64>,
    connections: usize,
    /// The replica of each connection.
    replicas: Vec<u32>,
}

impl Callers {
    /// The n-th caller's share is proportional to n to the power of −`exponent`.
    pub fn new(
        callers: usize,
        exponent: f64,
        connections: usize,
        replicas: usize,
        random: &mut Random,
    ) -> Self {
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = (1..=callers)
            .map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            })
            .collect();
        cumulative.iter_mut().for_each(|so_far| *so_far /= sum);
        let replicas = (0..callers * connections).map(|_| random.below(replicas) as u32).collect();
        Self { cumulative, connections, replicas }
    }

    /// The connection of the next request.
    pub fn next(&self, random: &mut Random) -> usize {
        let at = random.uniform();
        let caller = self.cumulative.partition_point(|&so_far| so_far <= at);
        let caller = caller.min(self.cumulative.len() - 1);
        caller * self.connections + random.below(self.connections)
    }

    pub fn replica(&self, connection: usize) -> usize {
        self.replicas[connection] as usize
    }

    /// A connection that broke is made again, to another replica.
    pub fn connect(&mut self, connection: usize, replica: usize) {
        self.replicas[connection] = replica as u32;
    }

    /// The share of all requests that goes to each replica.
    pub fn shares(&self, replicas: usize) -> Vec<f64> {
        let mut shares = vec![0.0; replicas];
        for (connection, &replica) in self.replicas.iter().enumerate() {
            let caller = connection / self.connections;
            let before = caller.checked_sub(1).map_or(0.0, |before| self.cumulative[before]);
            shares[replica as usize] +=
                (self.cumulative[caller] - before) / self.connections as f64;
        }
        shares
    }
}
