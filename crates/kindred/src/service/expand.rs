//! Expanding texts, and vectors of an encoder's tokens.

use std::sync::Arc;

use contract::{Expansion, RowSet, TokenVectors};
use filters::terms_of;

use super::Kindred;
use crate::Error;
use crate::answer::ImpliedTerms;
use crate::answering::Answering;
use crate::asking::{Asking, Times};
use crate::heads::{Expander, Tokenised, Vocabulary, WantedTerms, token_rows};
use crate::rows::Rows;

/// What is expanded, with the text and its tokens, unless there are only vectors; an error if no
/// word of the text is known.
type Prepared = Result<(Option<(String, Tokenised)>, Expansion), Error>;

/// Checks that the terms of an expander are still there.
///
/// # Errors
/// [`Error::InvalidValue`] if they are rows, and rows were changed since: some of them may have been
/// deleted or replaced.
pub fn check_terms(rows: &dyn Rows, expander: &Expander) -> Result<(), Error> {
    if expander.terms_folder().is_none() && rows.is_changed() {
        let must_be = "an expander with a folder of terms, because the rows of this model were \
                       changed, and the expander's terms are rows";
        return Err(Error::invalid("head", must_be));
    }
    Ok(())
}

impl Kindred {
    /// The terms that some texts imply, each text's largest weight first. A text without a word
    /// that the model has is an error of its own.
    ///
    /// ```
    /// use kindred::heads::WantedTerms;
    /// use kindred::{Kindred, Model, Settings};
    ///
    /// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
    /// let expander = kindred.built_in_expander().unwrap();
    /// let wanted = WantedTerms { top: 5, ..WantedTerms::default() };
    /// let answers = kindred.expand(&expander, ["cheap flights", "?!"], wanted).wait()?;
    /// let terms = &answers[0].as_ref().unwrap().terms;
    /// assert!(terms.iter().any(|term| term.word == "inexpensive"));
    /// assert!(answers[1].is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotAnswered`] for all of them; [`Error::InvalidValue`] if the expander was made for
    /// another model or takes no texts, or if its terms are rows of a table that were changed since;
    /// [`Error::InvalidFilter`].
    pub fn expand<T: AsRef<str>>(
        &self,
        expander: &Arc<Expander>,
        texts: impl IntoIterator<Item = T>,
        wanted: WantedTerms,
    ) -> Answering<'_, Result<Vec<Result<ImpliedTerms, Error>>, Error>> {
        // Making tokens of the texts is part of the time that they have.
        let (asking, model) = (self.asking(None), self.store());
        let vocabulary = self.check_expander(expander).and_then(|()| {
            Vocabulary::of_expander(expander, model)
                .ok_or_else(|| Error::invalid("head", "an expander of texts"))
        });
        let prepared = vocabulary.and_then(|vocabulary| {
            let terms = terms_of(self.sets(), expander, wanted.filter.as_deref())?;
            let prepare = |text: T| {
                let text = text.as_ref().to_owned();
                let tokenised = vocabulary.tokenise(&text);
                if !tokenised.has_answer() {
                    return Ok(Err(Error::no_known_word(tokenised.unknown)));
                }
                let rows = token_rows(&tokenised);
                let expansion = wanted.of(expander, &model.table(), rows, terms.clone())?;
                Ok(Ok((Some((text, tokenised)), expansion)))
            };
            texts.into_iter().map(prepare).collect()
        });
        self.expand_prepared(asking, expander, prepared, wanted)
    }

    /// The terms that vectors of tokens imply, from any encoder: `[tokens, dim]` for each text,
    /// with the components that the expander takes.
    ///
    /// ```
    /// use kindred::heads::WantedTerms;
    /// use kindred::{Kindred, Model, Settings};
    ///
    /// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
    /// let expander = kindred.built_in_expander().unwrap();
    /// let model = kindred.model();
    /// let frog = model.vector(model.row("frog").unwrap()).unwrap().to_vec();
    /// let answers = kindred.expand_vectors(&expander, [frog], WantedTerms::default()).wait()?;
    /// assert_eq!(answers[0].terms[0].word, "frog");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As those of [`expand`](Self::expand); [`Error::InvalidValue`] also if a text has no vector; an
    /// error of queries if a vector is not finite or has another number of components.
    pub fn expand_vectors(
        &self,
        expander: &Arc<Expander>,
        texts: impl IntoIterator<Item = Vec<f32>>,
        wanted: WantedTerms,
    ) -> Answering<'_, Result<Vec<ImpliedTerms>, Error>> {
        let filtered = self
            .check_expander(expander)
            .and_then(|()| Ok(terms_of(self.sets(), expander, wanted.filter.as_deref())?));
        let prepare = |terms: &RowSet, components: Vec<f32>| {
            if components.is_empty() {
                return Err(Error::invalid("vectors", "the vector of at least one token"));
            }
            let vectors = TokenVectors::Vectors(components);
            let expansion = wanted.of(expander, &self.store().table(), vectors, terms.clone())?;
            Ok(Ok((None, expansion)))
        };
        let texts = texts.into_iter();
        let prepared = filtered.and_then(|terms| texts.map(|text| prepare(&terms, text)).collect());
        let answers = self.expand_prepared(self.asking(None), expander, prepared, wanted);
        self.answering(async move { answers.await?.into_iter().collect() })
    }

    /// Checks that an expander can be asked.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if it was made for another model, or its terms are rows of a table
    /// that were changed since, some of which may have been deleted or replaced.
    pub fn check_expander(&self, expander: &Expander) -> Result<(), Error> {
        if expander.description().model.version != self.store().content() {
            return Err(Error::invalid("head", "an expander that was made for this model"));
        }
        check_terms(self.held().rows(), expander)
    }

    fn expand_prepared<'a>(
        &self,
        asking: Asking<'a>,
        expander: &Arc<Expander>,
        prepared: Result<Vec<Prepared>, Error>,
        wanted: WantedTerms,
    ) -> Answering<'a, Result<Vec<Result<ImpliedTerms, Error>>, Error>> {
        let expander = expander.clone();
        self.answering(async move {
            let mut expansions = Vec::new();
            let texts = prepared?.into_iter().map(|one| {
                one.map(|(text, expansion)| {
                    expansions.push(expansion);
                    text
                })
            });
            let texts: Vec<Result<Option<(String, Tokenised)>, Error>> = texts.collect();
            let found = asking.expand(expansions).await?;
            let times = Times { queue: found.queued, engine: found.device };
            let mut terms = found.responses.into_iter();
            let answers = texts.into_iter().map(|text| {
                let (text, terms) = (text?, terms.next().ok_or(Error::Internal)?);
                Ok(ImpliedTerms::new(&expander, &wanted, &terms, text, times))
            });
            Ok(answers.collect())
        })
    }
}
