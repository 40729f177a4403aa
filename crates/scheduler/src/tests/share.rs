//! How a pass's room is shared, without a queue around it.

use proptest::prelude::*;

use super::super::choose::Level;

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

proptest! {
    /// The definition: nothing is wasted, and no job has less than another that it could have taken from.
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
