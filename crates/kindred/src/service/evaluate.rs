//! How well a model answers sets of questions.

use super::Kindred;
use crate::answering::Answering;
use crate::evaluation::analogies::Section;
use crate::evaluation::results::{AnalogyResult, Case, SimilarityResult};
use crate::evaluation::run::Evaluation;
use crate::evaluation::similarities::Pair;
use crate::{Error, Method};

impl Kindred {
    /// How many questions of a set of analogies the model answers right, by each of these methods.
    /// `progress` gets the number of questions that were asked since its last call; each method
    /// asks all of them.
    ///
    /// ```
    /// use kindred::evaluation::analogies::Section;
    /// use kindred::evaluation::results::Case;
    /// use kindred::{Kindred, Method, Model, Settings};
    ///
    /// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
    /// let question = ["man", "king", "woman", "queen"].map(str::to_owned);
    /// let sections = [Section::listed("royals".into(), vec![question])];
    /// let methods = [Method::ThreeCosAdd];
    /// let case = Case::Lower;
    /// let asked = kindred.evaluate_analogies("mine", &sections, &methods, case, |_| ());
    /// assert_eq!(asked.wait()?.total.methods[&Method::ThreeCosAdd].right, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotAnswered`]; [`Error::MethodMismatch`] for 3CosMul and PairDirection under the
    /// metric `dot`.
    pub fn evaluate_analogies<'a>(
        &'a self,
        set: &'a str,
        sections: &'a [Section],
        methods: &'a [Method],
        case: Case,
        progress: impl FnMut(usize) + Send + 'a,
    ) -> Answering<'a, Result<AnalogyResult, Error>> {
        let asking = self.asking(None);
        self.answering(async move {
            let held = self.held();
            let evaluation = Evaluation { model: held.rows(), case, methods };
            evaluation.check()?;
            Ok(evaluation.analogies(asking, set, sections, progress).await?)
        })
    }

    /// How the model's cosine similarities of pairs rank against people's scores.
    pub fn evaluate_similarities(&self, set: &str, pairs: &[Pair], case: Case) -> SimilarityResult {
        let held = self.held();
        Evaluation { model: held.rows(), case, methods: &[] }.similarities(set, pairs)
    }
}
