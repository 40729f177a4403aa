//! A full pass in slices and shares finds what sorting all rows finds.

use std::sync::Arc;

use super::*;
use crate::full_pass::{Groups, first_of_each};
use crate::{Filter, QueryVector, RowBitmap, Scoring, score};
use proptest::prelude::*;

/// A group for each row, or none; one of them may have nearly all rows.
fn groups() -> impl Strategy<Value = Vec<Option<u64>>> {
    let group = prop_oneof![1 => Just(None), 2 => (0u64..20).prop_map(Some)];
    let group = prop_oneof![group, prop_oneof![19 => Just(Some(7)), 1 => Just(None)]];
    prop::collection::vec(group, 40)
}

proptest! {
    #[test]
    fn shares_and_their_order_change_nothing(
        // Few distinct components, so that ties and zero rows are common.
        components in prop::collection::vec((-2i8..=2).prop_map(f32::from), 2..80),
        ranked in prop::collection::vec(0u32..40, 0..12),
        excluded in prop::collection::vec(0u32..40, 0..3),
        bits in prop::option::of(prop::collection::vec(any::<bool>(), 40)),
        (k, min_score) in (0usize..40, prop::option::of(-1.0f64..1.0)),
        (cuts, given) in (prop::collection::vec(0usize..40, 0..5), 0usize..12),
        above in prop::collection::vec(prop_oneof![-1.0f64..1.0, Just(0.0), Just(-0.0), Just(1.0)], 0..3),
        groups in prop::option::of(groups()),
    ) {
        let components = &components[..components.len() / 2 * 2];
        let norms: Vec<f64> = components.chunks(2).map(score::norm).collect();
        let table = Table::new(components, &norms, 2);
        let row = |row: u32| Row(row % norms.len() as u32);
        let scoring = Scoring::vector(&table, vec![2.0, 1.0].into()).unwrap();
        let mut filter = Filter::excluding(excluded.into_iter().map(row).collect());
        filter.min_score = min_score;
        if let Some(bits) = bits {
            let members = (0..norms.len()).filter(|&row| bits[row]).map(|row| Row(row as u32));
            let bitmap = RowBitmap::of_rows(members, norms.len(), "v");
            filter.rows = filter.rows.within(Arc::new(bitmap));
        }
        let ranked: Vec<Row> = ranked.into_iter().map(row).collect();
        // Scores of rows as well.
        let mut above = above;
        above.extend((0..norms.len() as u32).step_by(7).filter_map(|row| scoring.score_of_row(&table, Row(row))));
        let query = FullPassQuery::new(scoring, k, filter.clone(), ranked.clone());
        let groups = groups.map(|groups| Arc::new(groups) as Arc<dyn Groups>);
        let query = FullPassQuery { above: above.clone(), groups: groups.clone(), ..query };

        let mut sorted: Vec<Hit> = (0..norms.len() as u32)
            .map(Row)
            .filter_map(|row| query.score(&table, row).map(|score| Hit { row, score }))
            .filter(|hit| filter.admits(hit.row, hit.score))
            .collect();
        sorted.sort();
        let rank = |&row: &Row| {
            let rank = sorted.iter().position(|hit| hit.row == row).map(|index| index as u32 + 1);
            RankedRow { row, score: query.score(&table, row), rank }
        };
        let ranks: Vec<RankedRow> = ranked.iter().map(rank).collect();
        let higher = |&score: &f64| sorted.iter().filter(|hit| hit.score > score).count() as u32;
        let above: Vec<u32> = above.iter().map(higher).collect();

        // What a device has counted.
        let mut counted = FullPassPart::new(FullPassQuery { k: 0, ..query.clone() });
        let own = |&row: &Row| query.score(&table, row).unwrap_or(f64::NAN);
        let scores: Vec<f64> = counted.distinct_ranked().iter().map(own).collect();
        let without = 1 + norms.len() as u32;
        let before: Vec<u32> = counted
            .distinct_ranked()
            .iter()
            .map(|row| rank(row).rank.unwrap_or(without) - 1)
            .chain(above.iter().copied())
            .collect();
        counted.answer_ranks(&table, &scores, &before);
        prop_assert!(counted.is_answered());
        let answer = FullPassAnswer { hits: Vec::new(), ranks: ranks.clone(), above: above.clone() };
        prop_assert_eq!(counted.into_answer(), answer);

        let mut part = FullPassPart::new(query.clone());
        prop_assert!(part.fits(&table));
        let unscored = part.unscored();
        let own = |&row: &Row| query.score(&table, row).unwrap_or(f64::NAN);
        let scores: Vec<f64> = unscored[..given.min(unscored.len())].iter().map(own).collect();
        part.set_scores(&scores);
        part.prepare(&table);
        prop_assert!(part.is_prepared() && part.unscored().is_empty() && part.fits(&table));
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(norms.len())).collect();
        cuts.extend([0, norms.len()]);
        cuts.sort_unstable();
        let mut shares = Vec::new();
        for cut in cuts.windows(2) {
            let scores: Vec<f64> = (cut[0] as u32..cut[1] as u32).map(|row| own(&Row(row))).collect();
            if cut[0] % 3 == 0 {
                let rows = (cut[0] as u32..).map(Row).zip(scores);
                let hits = rows.map(|(row, score)| Hit { row, score });
                let passes = |hit: &Hit| !hit.score.is_nan() && filter.admits(hit.row, hit.score);
                let hits: Vec<Hit> = hits.filter(passes).collect();
                let mut counts = vec![0; part.ranking().len()];
                for hit in &hits {
                    let after = part.ranking().partition_point(|ranked| ranked <= hit);
                    counts.get_mut(after).into_iter().for_each(|count| *count += 1);
                }
                let least = part.least_kept();
                part.merge_found(hits.into_iter().filter(|hit| hit.score >= least), &counts);
                continue;
            }
            let mut share = part.share();
            part.add_scores(&mut share, Row(cut[0] as u32), &scores);
            if cut[0] % 2 == 0 { part.merge(share) } else { shares.push(share) }
        }
        shares.into_iter().for_each(|share| part.merge(share));
        if let Some(groups) = groups {
            first_of_each(&*groups, &mut sorted);
        }
        sorted.truncate(k);
        prop_assert_eq!(part.into_answer(), FullPassAnswer { hits: sorted.clone(), ranks, above });
    }
}

#[test]
fn a_part_that_nobody_looked_at_has_an_empty_answer() {
    let table = Table::new(&[1.0, 0.0, 0.0, 2.0], &[1.0, 2.0], 2);
    let scoring = Scoring::vector(&table, QueryVector::Row(Row(0))).unwrap();
    let query = FullPassQuery::new(scoring, 3, Filter::default(), vec![Row(1), Row(1)]);
    let answer = FullPassPart::new(query).into_answer();
    let rank = RankedRow { row: Row(1), score: None, rank: None };
    let ranks = vec![rank; 2];
    assert_eq!(answer, FullPassAnswer { hits: Vec::new(), ranks, above: Vec::new() });
}

#[test]
fn groups_with_many_rows_take_little_room() {
    let groups: Arc<dyn Groups> =
        Arc::new((0..20_000).map(|row| Some(row % 3)).collect::<Vec<_>>());
    let mut list = List::new(10, Some(&groups));
    let scores = (0..20_000u32).map(|n| f64::from(n.wrapping_mul(2_654_435_761)) / 2f64.powi(32));
    let hits = (0..).map(Row).zip(scores).map(|(row, score)| Hit { row, score });
    let hits: Vec<Hit> = hits.collect();
    for &hit in &hits {
        list.push(hit);
        assert!(list.len() <= 2 * 10 + 16, "{} hits are kept", list.len());
    }
    let mut expected = hits;
    expected.sort();
    first_of_each(&*groups, &mut expected);
    assert_eq!((expected.len(), list.into_sorted()), (3, expected));
}
