//! RM3: expands a query by terms of the documents that it finds (Lavrenko and Croft 2001; Abdul-Jaleel et al. 2004).

use std::collections::HashMap;

use super::expansion::{Asked, Expansion, Mixing, Setting};
use super::index::{Term, Weighted};

const DOCUMENTS: [usize; 3] = [5, 10, 20];
const TERMS: [usize; 4] = [10, 20, 50, 100];
const WEIGHTS: [f64; 5] = [0.3, 0.4, 0.5, 0.6, 0.7];

/// RM3. A term's weight is its mean share of the words of the best documents, by their scores; the terms of the highest weights
/// are interpolated with the query.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rm3;

impl Rm3 {
    fn sizes() -> impl Iterator<Item = (usize, usize)> {
        DOCUMENTS.into_iter().flat_map(|documents| TERMS.map(|terms| (documents, terms)))
    }
}

impl Expansion for Rm3 {
    fn name(&self) -> &str {
        "RM3"
    }

    fn description(&self) -> String {
        "terms of the best documents".into()
    }

    fn settings(&self) -> Vec<Setting> {
        let setting =
            |(documents, terms)| vec![("documents", documents as f64), ("terms", terms as f64)];
        Self::sizes().map(setting).collect()
    }

    fn mixing(&self) -> Mixing {
        Mixing::Interpolate
    }

    fn weights(&self) -> Vec<f64> {
        WEIGHTS.to_vec()
    }

    fn terms(&self, setting: usize, asked: &Asked<'_>) -> Vec<Weighted> {
        let (documents, terms) = Self::sizes().nth(setting).expect("a setting");
        let mut model = HashMap::<Term, f64>::new();
        for &(document, score) in asked.best.iter().take(documents) {
            let (own, length) = asked.index.document(document);
            for &(term, count) in own {
                *model.entry(term).or_default() += score * f64::from(count) / f64::from(length);
            }
        }
        let mut model: Vec<Weighted> = model.into_iter().collect();
        model.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        model.truncate(terms);
        model
    }
}

#[cfg(test)]
mod tests {
    use super::super::analyse::Analyser;
    use super::super::index::{Bm25, Index};
    use super::super::texts::Text;
    use super::*;

    #[test]
    fn terms_are_those_of_the_best_documents_by_share_and_score() {
        let text = |text: &str| Text { id: String::new(), text: text.into(), line: 1 };
        let mut texts = vec![text("a b b c"), text("a d"), text("e e"), text("f")];
        texts.extend((0..12).map(|n| text(&format!("g{n}"))));
        let analyser = Analyser::new("", false);
        let index = Index::new(&texts, &analyser);
        let asked = |best| Asked {
            number: 0,
            words: &[],
            terms: &[],
            index: &index,
            analyser: &analyser,
            bm25: Bm25 { k1: 1.2, b: 0.75 },
            best,
        };
        let best = [(0, 3.0), (1, 1.0), (2, 0.5), (3, 0.25), (4, 0.125), (5, 0.1)];
        // The first five documents: b 3 · 2/4; a 3 · 1/4 + 1 · 1/2; c 3 · 1/4; d 1 · 1/2; e 0.5 · 2/2; f, g0.
        let number = |term: &str| index.term(term).unwrap();
        let expected = [
            ("b", 1.5),
            ("a", 1.25),
            ("c", 0.75),
            ("d", 0.5),
            ("e", 0.5),
            ("f", 0.25),
            ("g0", 0.125),
        ];
        let expected = expected.map(|(term, weight)| (number(term), weight));
        assert_eq!(Rm3.terms(0, &asked(&best)), expected);
        assert_eq!(Rm3.settings()[0], [("documents", 5.0), ("terms", 10.0)]);
        let many: Vec<(u32, f64)> = (0..16).map(|document| (document, 1.0)).collect();
        assert_eq!(Rm3.terms(Rm3.settings().len() - 4, &asked(&many)).len(), 10);
        assert!(Rm3.terms(0, &asked(&[])).is_empty(), "nothing was found");
    }
}
