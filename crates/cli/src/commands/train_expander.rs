//! `kindred train expander`: makes an expander to near words.

use std::num::NonZeroUsize;

use kindred::heads::{plain_expander, reach_of, write_expander};

use super::beside::Verification;
use super::{CommandError, check_is_free, heading, model_of_head, tokens};
use crate::arguments::TrainExpanderArguments;

/// Terms of a typical word.
const TERMS: usize = 20;

/// Makes an expander, and writes its folder.
pub(super) fn train_expander(arguments: &TrainExpanderArguments) -> Result<(), CommandError> {
    check_is_free(&arguments.out, arguments.replace)?;
    let model = model_of_head(&arguments.model)?.model;
    let verification = Verification::start(&model)?;
    let tokens = tokens(&model, arguments.tokens);
    let terms = arguments.terms.map_or(TERMS, NonZeroUsize::get);
    if terms > model.rows() && arguments.terms.is_some() {
        let message = format!("--terms: the model has {} words; ask for fewer", model.rows());
        return Err(CommandError::Usage(message));
    }
    let reach = reach_of(&model, tokens.clone(), terms, arguments.threads)?;
    let (mut description, weights) = plain_expander(&model, tokens, reach);
    description.log1p = !arguments.linear;
    verification.finish(None)?;
    write_expander(&arguments.out, arguments.replace, &description, &weights, &model)?;
    say!(
        "{}: an expander over {}, {} terms; half of the frequent words have {terms} or more; reach \
         {reach:.3}",
        arguments.out.display(),
        heading(None, model.name(), model.version()),
        model.rows()
    )
}
