//! Expansions against the formula, and what is refused.

use super::*;
use crate::{Hit, RowBitmap};
use proptest::prelude::*;

#[derive(Debug)]
struct Numbers {
    components: Vec<f32>,
    norms: Vec<f64>,
    biases: Option<Vec<f32>>,
    dim: usize,
}

impl Numbers {
    fn new(components: Vec<f32>, dim: usize, biases: Option<Vec<f32>>) -> Self {
        let norms = components.chunks(dim).map(score::norm).collect();
        Self { components, norms, biases, dim }
    }
}

impl HasTable for Numbers {
    fn table(&self) -> Table<'_> {
        Table::new(&self.components, &self.norms, self.dim).under_dot(self.biases.as_deref())
    }
}

#[derive(Debug)]
struct Small {
    terms: Arc<dyn HasTable>,
    projection: Option<Vec<f32>>,
}

impl TermExpander for Small {
    fn terms(&self) -> &Arc<dyn HasTable> {
        &self.terms
    }

    fn projection(&self) -> Option<&[f32]> {
        self.projection.as_deref()
    }
}

fn small(projection: Option<Vec<f32>>) -> Arc<dyn TermExpander> {
    let terms = vec![1.0, 0.0, 0.0, 1.0, 2.0, 0.0, 1.0, 1.0];
    let terms = Numbers::new(terms, 2, Some(vec![0.0, 0.5, -1.0, 0.0]));
    Arc::new(Small { terms: Arc::new(terms), projection })
}

fn terms(expansion: &Expansion, model: &Table<'_>) -> Vec<(u32, f64, u32)> {
    let term = |term: &Term| (term.row.0, term.value, term.position);
    expansion.terms(model).iter().map(term).collect()
}

#[test]
fn values_are_maxima_above_zero_with_their_first_position() {
    let model = Numbers::new(vec![1.0, 0.0, 0.0, 2.0, 1.0, 0.0], 2, None);
    let model = model.table();
    let new =
        |vectors, top, least| Expansion::new(small(None), &model, vectors, top, least).unwrap();
    let tokens = || TokenVectors::Rows(vec![Row(0), Row(1), Row(2)]);
    let all = [(1, 2.5, 1), (3, 2.0, 1), (0, 1.0, 0), (2, 1.0, 0)];
    assert_eq!(terms(&new(tokens(), 9, 0.0), &model), all);
    assert_eq!(terms(&new(tokens(), 2, 0.0), &model), all[..2]);
    assert_eq!(terms(&new(tokens(), 9, 2.0), &model), all[..2], "the minimum is inclusive");
    assert_eq!(terms(&new(TokenVectors::Rows(vec![]), 9, 0.0), &model), []);
    let away = TokenVectors::Vectors(vec![-1.0, -1.0]);
    assert_eq!(terms(&new(away, 9, -5.0), &model), [], "never zero or less");

    // Twice the second component, then the first.
    let turned = small(Some(vec![0.0, 2.0, 1.0, 0.0]));
    let turned = Expansion::new(turned, &model, tokens(), 1, 0.0).unwrap();
    assert_eq!(terms(&turned, &model), [(2, 7.0, 1)]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let model = Numbers::new(vec![1.0; 4], 2, None);
    let model = model.table();
    let refused = |vectors| Expansion::new(small(None), &model, vectors, 1, 0.0).unwrap_err();
    assert_eq!(
        refused(TokenVectors::Rows(vec![Row(1), Row(2)])),
        QueryError::NoSuchRow { row: Row(2), rows: 2 }
    );
    assert_eq!(
        refused(TokenVectors::Vectors(vec![1.0; 3])),
        QueryError::Dimension { found: 1, expected: 2 }
    );
    assert_eq!(
        refused(TokenVectors::Vectors(vec![1.0, 1.0, 1.0, f32::NAN])),
        QueryError::NotFinite { index: 1 }
    );
    for (terms, fits) in [(4, true), (5, false)] {
        let bitmap = Arc::new(RowBitmap::of_rows([Row(1)], terms, "v"));
        let text = Expansion::new(small(None), &model, TokenVectors::Rows(vec![Row(1)]), 1, 0.0);
        assert_eq!(text.unwrap().within(RowSet::of(bitmap)).fits(&model), fits);
    }
    let large = small(Some(vec![f32::MAX; 4]));
    let tokens = TokenVectors::Vectors(vec![1.0, 1.0, 0.0, 0.0]);
    let large = Expansion::new(large, &model, tokens, 9, 0.0).unwrap();
    assert!(large.query(&model, 0).is_none() && large.query(&model, 1).is_some());
    assert_eq!(terms(&large, &model), [(1, 0.5, 1)]);
}

/// As components of vectors of two.
fn pairs(numbers: &[i8]) -> Vec<f32> {
    numbers[..numbers.len() / 2 * 2].iter().map(|&n| f32::from(n)).collect()
}

proptest! {
    #[test]
    fn the_parts_of_a_text_have_its_terms_together(
        rows in prop::collection::vec(-2i8..3, 2..60),
        tokens in prop::collection::vec(-1i8..2, 0..90),
        top in 0usize..12,
        length in 1usize..9,
        twice: bool,
    ) {
        let terms = Arc::new(Numbers::new(pairs(&rows), 2, None));
        let expander = Arc::new(Small { terms: terms.clone(), projection: None });
        let model = terms.table();
        let vectors = TokenVectors::Vectors(pairs(&tokens));
        let text = Expansion::new(expander, &model, vectors, top, 0.0).unwrap();
        let expected = text.terms(&model);
        let (mut best, mut first) = (BestTerms::new(top), 0);
        for part in text.cut(length) {
            prop_assert!(part.tokens() <= length);
            let mut terms = part.terms(&model);
            terms.iter_mut().for_each(|term| term.position += first);
            first += part.tokens() as u32;
            (0..1 + usize::from(twice)).for_each(|_| best.add(terms.clone()));
        }
        prop_assert_eq!(first as usize, tokens.len() / 2);
        prop_assert_eq!(best.finish(), expected);
    }

    #[test]
    fn searches_of_tokens_join_to_the_formula(
        // Few distinct numbers, so that ties are common.
        rows in prop::collection::vec(-2i8..3, 2..60),
        tokens in prop::collection::vec(-1i8..2, 0..90),
        top in 0usize..12,
        least in prop_oneof![Just(0.0), Just(1.0), Just(2.0)],
        members in prop::option::of(prop::collection::vec(any::<bool>(), 30)),
    ) {
        let terms = Arc::new(Numbers::new(pairs(&rows), 2, None));
        let expander = Arc::new(Small { terms: terms.clone(), projection: None });
        let model = terms.table();
        let vectors = TokenVectors::Vectors(pairs(&tokens));
        let mut expansion = Expansion::new(expander, &model, vectors, top, least).unwrap();
        if let Some(members) = members {
            let rows = (0..model.rows()).filter(|&row| members[row]).map(|row| Row(row as u32));
            let bitmap = RowBitmap::of_rows(rows, model.rows(), "v");
            expansion = expansion.within(RowSet::of(Arc::new(bitmap)).less(vec![Row(2)]));
            let terms = expansion.terms(&model);
            prop_assert!(terms.iter().all(|term| expansion.rows().contains(term.row)));
        }
        let mut part = PartOfExpansion::new(expansion.clone());
        for position in 0..expansion.tokens() {
            let query = expansion.query(&model, position).unwrap();
            let hit = |row| Some(Hit { row, score: query.score(&model, row)? });
            let mut hits: Vec<Hit> = (0..model.rows() as u32).map(Row).filter_map(hit).collect();
            hits.retain(|hit| query.filter.admits(hit.row, hit.score));
            hits.sort();
            hits.truncate(query.k);
            part.add(&hits);
        }
        prop_assert_eq!(part.into_terms(), expansion.terms(&model));
    }
}
