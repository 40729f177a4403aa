//! Which terms an expander may have.

use std::sync::Arc;

use contract::{Row, RowBitmap, RowSet};
use model_store::head::Expander;

use super::check::check;
use super::error::SetError;
use super::parse::parse;
use super::sets::SetsWhile;

/// The terms of an expander that meet a filter; all of them without one. `sets` are those of the
/// model that the expander was made for. They keep what is found of this model's rows; the rows of
/// another folder, which has an expander's terms, are looked at each time.
///
/// # Errors
/// If the text is no filter, or names what the model with the terms does not have; if the caller
/// did not want the terms any more before they were found.
pub fn terms_of<'a>(
    sets: impl Into<SetsWhile<'a>>,
    expander: &Expander,
    filter: Option<&str>,
) -> Result<RowSet, SetError> {
    let Some(text) = filter else { return Ok(RowSet::all()) };
    let sets = sets.into();
    let rows = match expander.terms_folder() {
        None => sets.of(text)?,
        Some(model) => {
            let plan = check(&parse(text)?, model)?;
            let found = plan.bitmap_while(model.content(), sets.goes_on());
            Arc::new(found.ok_or(SetError::Unwanted)?)
        }
    };
    let Some(of_terms) = expander.term_rows() else { return Ok(RowSet::of(rows)) };
    let terms = (0u32..).map(Row).zip(of_terms).filter(|(_, row)| rows.contains(**row));
    let terms = terms.map(|(term, _)| term);
    Ok(RowSet::of(RowBitmap::of_rows(terms, of_terms.len(), rows.version()).into()))
}

#[cfg(test)]
mod tests {
    use model_store::ModelStore;
    use model_store::head::{
        Cut, ExpanderDescription, ExpanderWeights, MadeFor, TermsFrom, Tokeniser, Tokens,
        write_expander,
    };
    use model_store::prepare::{Input, PrepareOptions, prepare_folder};

    use super::*;
    use crate::{FilterError, FilterSets};

    fn tokens() -> Tokens {
        Tokens { tokeniser: Tokeniser::Words, lower_case: false, limit: 9, cut: Cut::End }
    }

    fn model() -> Arc<ModelStore> {
        let rows: [(&str, &[f32]); 4] =
            [("a", &[1.0]), ("b", &[2.0]), ("c", &[3.0]), ("d", &[4.0])];
        Arc::new(ModelStore::from_rows_under_dot("m", 1, rows, None).unwrap())
    }

    fn members(rows: &RowSet, terms: usize) -> Vec<u32> {
        (0..terms as u32).filter(|&row| rows.contains(Row(row))).collect()
    }

    #[test]
    fn terms_are_the_rows_of_the_model_or_some_of_them() {
        let model = model();
        let sets = FilterSets::for_model(&model);
        let all = Expander::of_model(&model, tokens()).unwrap();
        let filter = Some("key IN [b, d, x]");
        assert!(terms_of(&sets, &all, None).unwrap().is_all());
        let found = terms_of(&sets, &all, filter).unwrap();
        assert_eq!((members(&found, 4), found.fits(4)), (vec![1, 3], true));
        let same = sets.of("key IN [d, x, b]").unwrap();
        assert_eq!(found.bitmap().unwrap().id(), same.id(), "it is kept");
        let wrong = terms_of(&sets, &all, Some("prize < 3"));
        assert!(matches!(wrong, Err(SetError::Invalid(FilterError { column: 1, .. }))));

        let rows = Some(vec![Row(0), Row(1), Row(3)]);
        let weights = ExpanderWeights { rows, ..Default::default() };
        let description = ExpanderDescription::of_model(&model, tokens());
        let some = Expander::from_memory(description, weights, &model).unwrap();
        let found = terms_of(&sets, &some, filter).unwrap();
        assert_eq!((members(&found, 3), found.fits(3)), (vec![1, 2], true));
        assert_eq!((some.term(Row(1)), some.term(Row(2))), ("b", "d"));
    }

    #[test]
    fn terms_of_another_folder_are_chosen_by_its_words() {
        let (model, folder) = (model(), tempfile::tempdir().unwrap());
        let path = |name| folder.path().join(name);
        std::fs::write(path("terms.txt"), "x 1\ny 2\nb 3\n").unwrap();
        let options = PrepareOptions { metric: contract::Metric::Dot, ..Default::default() };
        let input = Input::File(&path("terms.txt"));
        let go_on = &mut |_| std::ops::ControlFlow::Continue(());
        prepare_folder(input, &path("terms"), &options, go_on).unwrap();
        let terms = ModelStore::open(&path("terms")).unwrap();
        let from = TermsFrom::Folder { path: "../terms".into(), model: MadeFor::of(&terms) };
        let description = ExpanderDescription::of_model(&model, tokens());
        let description = ExpanderDescription { terms: from, ..description };
        let none = ExpanderWeights::default();
        write_expander(&path("head"), false, &description, &none, &model).unwrap();
        let expander = Expander::open(&path("head"), &model).unwrap();
        let sets = FilterSets::for_model(&model);
        let found = terms_of(&sets, &expander, Some("key IN [a, b, x]")).unwrap();
        assert_eq!((members(&found, 3), found.fits(3)), (vec![0, 2], true));
        assert_eq!(sets.counts().made, 0);
    }
}
