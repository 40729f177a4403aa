//! How a pass's room is shared, without a queue around it.

use proptest::prelude::*;

use std::collections::VecDeque;

use super::super::choose::{Gathering, Level, Room, Waiting, by_level, choose, fill};
use super::super::job::{Asker, Ticket};
use super::super::sync::Home;
use super::later;
use super::workloads::{Calculator, CountUp};

fn shares(room: usize, left: &[usize]) -> Vec<usize> {
    let mut level = Level::of(room, &mut left.to_vec());
    left.iter().map(|&left| level.take(left)).collect()
}

#[test]
fn a_batch_gets_what_single_queries_leave_it() {
    assert_eq!(shares(8, &[1024]), [8]);
    assert_eq!(shares(8, &[1024, 1, 1, 1]), [5, 1, 1, 1]);
    assert_eq!(shares(8, &[1024, 1024, 1]), [4, 3, 1]);
    assert_eq!(shares(8, &[1024, 2, 1024, 1]), [3, 2, 2, 1]);
    assert_eq!(shares(3, &[5, 1, 5, 1, 1]), [1, 1, 1, 0, 0]);
}

/// The jobs of these callers, of requests with these costs.
fn jobs(of: &[(u64, Vec<u64>)]) -> VecDeque<Waiting<CountUp>> {
    let now = std::time::Instant::now();
    let one = |(caller, costs): &(u64, Vec<u64>)| Waiting {
        requests: costs.clone().into_iter(),
        cost: costs.iter().sum::<u64>() as usize,
        deadline: later(),
        caller: Some(*caller),
        asker: Asker::Whole(Ticket {
            reply: None,
            home: Home::current(),
            entered: now,
            slots: None,
            times: None,
        }),
        failed_in: None,
        taken: 0,
        // What an earlier choice may have left.
        chosen: 7,
        chosen_cost: 7,
    };
    of.iter().map(one).collect()
}

fn chosen(jobs: &VecDeque<Waiting<CountUp>>) -> Vec<(usize, usize)> {
    jobs.iter().map(|job| (job.chosen, job.chosen_cost)).collect()
}

proptest! {
    /// With more callers than room, a shorter way chooses the same.
    #[test]
    fn one_of_each_caller_is_what_levels_give(
        all in 1usize..8,
        of_one_caller in 1usize..8,
        of in prop::collection::vec((0u64..12, prop::collection::vec(1u64..6, 1..4)), 1..20),
    ) {
        let (room, device) = (Room { all, of_one_caller }, Calculator::default());
        let (mut found, mut expected) = (jobs(&of), jobs(&of));
        let counting = CountUp::default();
        choose(&counting, &device, &mut found, room);
        let cost: usize = expected.iter().map(|job| job.cost).sum();
        prop_assume!(cost > all);
        expected.iter_mut().for_each(|job| (job.chosen, job.chosen_cost) = (0, 0));
        let mut pass = Gathering::new(&counting, &device, room);
        let mut callers = Default::default();
        by_level(&mut pass, &mut expected, &mut callers);
        fill(&mut pass, &mut expected, &mut callers);
        prop_assert_eq!(chosen(&found), chosen(&expected));
    }

    /// The definition: nothing is wasted, and no job has less than another that it could have taken
    /// from.
    #[test]
    fn room_is_shared_by_max_min_fairness(
        room in 1usize..40,
        left in prop::collection::vec(1usize..30, 1..40),
    ) {
        prop_assume!(left.iter().sum::<usize>() > room);
        let shares = shares(room, &left);
        prop_assert_eq!(shares.iter().sum::<usize>(), room);
        let most = *shares.iter().max().unwrap();
        for (&share, &left) in shares.iter().zip(&left) {
            prop_assert!(share <= left);
            prop_assert!(share == left || share + 1 >= most, "{:?} of {:?}", shares, left);
            prop_assert!(share > 0 || shares.len() > room);
        }
        // Those that get something come first.
        let first_without = shares.iter().position(|&share| share == 0).unwrap_or(shares.len());
        prop_assert!(shares[first_without..].iter().all(|&share| share == 0));
    }
}
