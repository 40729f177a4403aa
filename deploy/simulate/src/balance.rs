//! The balancing rules.

use std::fmt;
use std::str::FromStr;

use crate::random::Random;

/// How a balancer chooses a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Not per request: a caller's connections stay where they are.
    Connection,
    Random,
    RoundRobin,
    /// Of two random replicas, the one with fewer requests outstanding.
    TwoChoices,
    /// The replica with the fewest requests outstanding; a random one of several.
    Least,
}

impl Rule {
    pub const ALL: [Self; 5] =
        [Self::Connection, Self::Random, Self::RoundRobin, Self::TwoChoices, Self::Least];

    fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Random => "random",
            Self::RoundRobin => "round-robin",
            Self::TwoChoices => "two-choices",
            Self::Least => "least",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Rule {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|rule| rule.name() == name);
        found.ok_or_else(|| format!("`{name}` is no rule: name one of {}", names()))
    }
}

/// The replicas that get requests. All balancers know them alike.
#[derive(Debug)]
pub struct Rotation {
    usable: Vec<u32>,
    /// Where each replica is in `usable`.
    places: Vec<Option<u32>>,
}

impl Rotation {
    pub fn new(replicas: usize) -> Self {
        let usable: Vec<u32> = (0..replicas as u32).collect();
        let places = usable.iter().copied().map(Some).collect();
        Self { usable, places }
    }

    pub fn has(&self, replica: usize) -> bool {
        self.places[replica].is_some()
    }

    fn remove(&mut self, replica: usize) {
        if let Some(place) = self.places[replica].take() {
            self.usable.swap_remove(place as usize);
            if let Some(&moved) = self.usable.get(place as usize) {
                self.places[moved as usize] = Some(place);
            }
        }
    }

    fn add(&mut self, replica: usize) {
        if self.places[replica].is_none() {
            self.places[replica] = Some(self.usable.len() as u32);
            self.usable.push(replica as u32);
        }
    }

    /// A random replica that is not this one.
    pub fn any(&self, random: &mut Random, not: Option<usize>) -> Option<usize> {
        let without = not.and_then(|not| self.places[not]).map(|place| place as usize);
        let number = self.usable.len() - usize::from(without.is_some());
        if number == 0 {
            return None;
        }
        let drawn = random.below(number);
        Some(self.usable[drawn + usize::from(without.is_some_and(|place| drawn >= place))] as usize)
    }
}

/// Balancers with one rule, each with its own count of the requests it waits for.
#[derive(Debug)]
pub struct Balancers {
    rule: Rule,
    replicas: usize,
    pub rotation: Rotation,
    /// By balancer and replica.
    outstanding: Vec<u32>,
    /// By balancer: where round robin continues.
    next: Vec<usize>,
    /// By balancer, for the rule `Least`.
    queues: Vec<ByLength>,
}

impl Balancers {
    pub fn new(rule: Rule, balancers: usize, replicas: usize, random: &mut Random) -> Self {
        let queues = if rule == Rule::Least { balancers } else { 0 };
        Self {
            rule,
            replicas,
            rotation: Rotation::new(replicas),
            outstanding: vec![0; balancers * replicas],
            next: (0..balancers).map(|_| random.below(replicas)).collect(),
            queues: (0..queues).map(|_| ByLength::new(replicas)).collect(),
        }
    }

    /// The replica for a request that this balancer has, other than the one that it was just sent to. None if no other
    /// is in rotation.
    pub fn choose(
        &mut self,
        balancer: usize,
        not: Option<usize>,
        random: &mut Random,
    ) -> Option<usize> {
        match self.rule {
            Rule::Connection | Rule::Random => self.rotation.any(random, not),
            Rule::RoundRobin => {
                for _ in 0..self.replicas {
                    let replica = self.next[balancer];
                    self.next[balancer] = (replica + 1) % self.replicas;
                    if self.rotation.has(replica) && Some(replica) != not {
                        return Some(replica);
                    }
                }
                None
            }
            Rule::TwoChoices => {
                let one = self.rotation.any(random, not)?;
                let other =
                    self.rotation.any(random, Some(one)).filter(|&other| Some(other) != not);
                let counts = &self.outstanding[balancer * self.replicas..];
                Some(other.filter(|&other| counts[other] < counts[one]).unwrap_or(one))
            }
            Rule::Least => self.queues[balancer].shortest(random, not),
        }
    }

    pub fn sent(&mut self, balancer: usize, replica: usize) {
        self.outstanding[balancer * self.replicas + replica] += 1;
        if let Some(queues) = self.queues.get_mut(balancer) {
            queues.change(replica, 1);
        }
    }

    pub fn done(&mut self, balancer: usize, replica: usize) {
        self.outstanding[balancer * self.replicas + replica] -= 1;
        if let Some(queues) = self.queues.get_mut(balancer) {
            queues.change(replica, -1);
        }
    }

    pub fn take_out(&mut self, replica: usize) {
        self.rotation.remove(replica);
        for queues in &mut self.queues {
            queues.take_out(replica);
        }
    }

    pub fn put_in(&mut self, replica: usize) {
        self.rotation.add(replica);
        self.queues.iter_mut().for_each(|queues| queues.put_in(replica));
    }
}

/// Replicas by the number of requests outstanding, so that the shortest queue among a thousand is found at once.
#[derive(Debug)]
struct ByLength {
    lengths: Vec<u32>,
    /// Where each replica is in the list of its length; None if it is out of rotation.
    places: Vec<Option<u32>>,
    lists: Vec<Vec<u32>>,
    /// All lists of shorter lengths are empty.
    shortest: usize,
}

impl ByLength {
    fn new(replicas: usize) -> Self {
        let mut new = Self {
            lengths: vec![0; replicas],
            places: vec![None; replicas],
            lists: vec![Vec::new()],
            shortest: 0,
        };
        (0..replicas).for_each(|replica| new.put_in(replica));
        new
    }

    fn put_in(&mut self, replica: usize) {
        if self.places[replica].is_some() {
            return;
        }
        let length = self.lengths[replica] as usize;
        if self.lists.len() <= length {
            self.lists.resize(length + 1, Vec::new());
        }
        self.places[replica] = Some(self.lists[length].len() as u32);
        self.lists[length].push(replica as u32);
        self.shortest = self.shortest.min(length);
    }

    fn take_out(&mut self, replica: usize) -> bool {
        let Some(place) = self.places[replica].take() else { return false };
        let list = &mut self.lists[self.lengths[replica] as usize];
        list.swap_remove(place as usize);
        if let Some(&moved) = list.get(place as usize) {
            self.places[moved as usize] = Some(place);
        }
        true
    }

    fn change(&mut self, replica: usize, by: i32) {
        let was_in = self.take_out(replica);
        self.lengths[replica] = self.lengths[replica].wrapping_add_signed(by);
        if was_in {
            self.put_in(replica);
        }
    }

    fn shortest(&mut self, random: &mut Random, not: Option<usize>) -> Option<usize> {
        let empty = self.lists[self.shortest..].iter().take_while(|list| list.is_empty()).count();
        self.shortest = (self.shortest + empty).min(self.lists.len() - 1);
        self.lists[self.shortest..].iter().find_map(|list| {
            let without = not.filter(|&not| list.iter().any(|&one| one as usize == not));
            let number = list.len() - usize::from(without.is_some());
            let mut others =
                list.iter().map(|&one| one as usize).filter(|&one| Some(one) != without);
            match (number, without) {
                (0, _) => None,
                (_, None) => Some(list[random.below(number)] as usize),
                (_, Some(_)) => others.nth(random.below(number)),
            }
        })
    }
}
