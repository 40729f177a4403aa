//! Classifying texts, and the heads that there are.

use std::path::Path;
use std::sync::Arc;

use contract::TokenText;
use rayon::prelude::*;

use super::Kindred;
use crate::Error;
use crate::answer::Classified;
use crate::answering::Answering;
use crate::asking::Times;
use crate::heads::{
    ClassScores, Expander, FastTextHead, HeadError, TextClassifier, Tokenised, Vocabulary,
    built_in, own_expander,
};

impl Kindred {
    /// The labels that a head gives to some texts, each the most probable first. A text without a
    /// word that the head knows is an error of its own.
    ///
    /// ```
    /// use kindred::{Kindred, Model, Settings};
    ///
    /// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
    /// let head = kindred.built_in_head().unwrap();
    /// let answers = kindred.classify(&head, ["a moving and funny film", "?!"]).wait()?;
    /// assert_eq!(answers[0].as_ref().unwrap().labels[0].name, "positive");
    /// assert!(answers[1].is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotAnswered`] for all of them; [`Error::InvalidValue`] if the head was made for
    /// another model.
    pub fn classify<T: AsRef<str>>(
        &self,
        head: &TextClassifier,
        texts: impl IntoIterator<Item = T>,
    ) -> Answering<'_, Result<Vec<Result<Classified, Error>>, Error>> {
        let (asking, model) = (self.asking(None), self.store());
        let fits = head.fits(model);
        let (classifier, head) = match head {
            TextClassifier::OverRows(over_rows) => (head.clone(), over_rows),
            TextClassifier::FastText(fasttext) => {
                let answers = classified_by(fasttext, head, texts);
                return self.answering(async move { Ok(answers) });
            }
        };
        let vocabulary = Vocabulary::of_head(head, model);
        let tokenised: Vec<Tokenised> = match fits {
            true => texts.into_iter().map(|text| vocabulary.tokenise(text.as_ref())).collect(),
            false => Vec::new(),
        };
        let head = head.clone();
        self.answering(async move {
            if !fits {
                return Err(Error::invalid("head", "a head that was made for this model"));
            }
            let known = tokenised.iter().filter(|text| !text.tokens.is_empty());
            let texts = known.map(|text| TokenText::new(head.clone(), text.tokens.clone()));
            let texts: Vec<TokenText> = texts.collect();
            let found = asking.classify(texts).await?;
            let times = Times { queue: found.queued, engine: found.device };
            let mut scores = found.responses.into_iter();
            let answers = tokenised.into_iter().map(|text| {
                if text.tokens.is_empty() {
                    return Err(Error::no_known_word(text.unknown));
                }
                let scores = scores.next().ok_or(Error::Internal)?;
                Ok(Classified::new(&classifier, &scores, text, times)?)
            });
            Ok(answers.collect())
        })
    }

    /// The expander of the built-in model, or of a model under the metric `dot`; `None` for other
    /// models.
    pub fn built_in_expander(&self) -> Option<Arc<Expander>> {
        own_expander(self.shared.model.store()).map(|(_, expander)| expander)
    }

    /// Opens an expander's folder.
    ///
    /// # Errors
    /// As [`head`](Self::head).
    pub fn expander(&self, folder: impl AsRef<Path>) -> Result<Arc<Expander>, HeadError> {
        Ok(Arc::new(Expander::open(folder.as_ref(), self.shared.model.store())?))
    }

    /// The head of the built-in model; `None` for other models.
    pub fn built_in_head(&self) -> Option<TextClassifier> {
        built_in(self.store()).map(TextClassifier::from)
    }

    /// Opens a head's folder.
    ///
    /// # Errors
    /// If it is no head, is damaged, or was made for another model. Each names the cure.
    pub fn head(&self, folder: impl AsRef<Path>) -> Result<TextClassifier, HeadError> {
        TextClassifier::open(folder.as_ref(), self.store())
    }
}

/// The answers of a head that needs no engine. Several texts are read side by side.
fn classified_by<T: AsRef<str>>(
    head: &FastTextHead,
    classifier: &TextClassifier,
    texts: impl IntoIterator<Item = T>,
) -> Vec<Result<Classified, Error>> {
    let texts: Vec<T> = texts.into_iter().collect();
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    let answer = |text: &&str| {
        let mut tokenised = head.split(text);
        let ClassScores { scores, unknown } = head.scores(text, &tokenised.bytes, || true);
        if scores.is_empty() {
            return Err(Error::no_known_word(unknown));
        }
        tokenised.unknown = unknown;
        Ok(Classified::new(classifier, &scores, tokenised, Times::default())?)
    };
    match &texts[..] {
        [one] => vec![answer(one)],
        several => several.par_iter().map(answer).collect(),
    }
}
