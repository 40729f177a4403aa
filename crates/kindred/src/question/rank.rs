//! The ranks of given words among the neighbours of a query, by one pass over all rows.

use contract::FullPassQuery;

use super::look_up::{each_once, look_up, row_of, unknown_words};
use super::notes::Notes;
use super::prepare::{Checked, Resolved, resolve};
use super::target::Target;
use super::with_added::WithAdded;
use crate::Error;

use crate::options::Unknown;
use crate::rows::Rows;

/// Most words that one question may rank.
pub const MAX_RANKED: usize = 1000;

/// Looks all words up and makes the query whose answer has the ranks of `words`. In errors, unknown
/// words of the target come first.
///
/// # Errors
/// As [`prepare`](super::prepare), for the target and for the words.
pub fn prepare_rank(
    model: &dyn Rows,
    words: Vec<String>,
    target: Target,
    options: &Checked,
) -> Result<(FullPassQuery, Notes), Error> {
    let query =
        resolve(model, target, options.method, options.unknown, false).and_then(|resolved| {
            let with = WithAdded { rows: model, added: &resolved.added };
            Ok((resolved.formula.scoring(&with)?, resolved))
        });
    let to_rank = words.into_iter().map(|word| row_of(model, word));
    // Only rows have ranks.
    let to_rank = look_up(to_rank, options.unknown.unwrap_or(Unknown::Error));
    let ((scoring, resolved), (rows, left_out)) = match (query, to_rank) {
        (Ok(query), Ok(to_rank)) => (query, to_rank),
        (
            Err(Error::UnknownWord { unknown: mut first }),
            Err(Error::UnknownWord { unknown: second }),
        ) => {
            first.extend(second);
            return Err(unknown_words(first.into_iter().map(|unknown| unknown.word)));
        }
        // An error about unknown words comes before one about known words that can't be used.
        (Err(Error::ZeroQuery { .. } | Error::NotFinite { .. }), Err(error))
        | (Err(error), _)
        | (_, Err(error)) => return Err(error),
    };
    let Resolved { inputs, mut notes, .. } = resolved;
    if let Some(skipped) = &mut notes.skipped {
        *skipped = each_once(skipped.drain(..).chain(left_out));
    }
    Ok((FullPassQuery::new(scoring, 0, options.filter(inputs), rows), notes))
}
