//! `kindred embed`: the vectors of texts, as lines of JSON or as an array.

use kindred::question::{EncodeOptions, EncodedText, Notes, encode};
use kindred::rows::Rows;
use kindred::{Error, Model, SubwordsOf, TextTokens, npy, replace_file};
use serde::Serialize;
use server::http::problem;

use super::{CommandError, check_is_free, each_batch, model_of, print};
use crate::arguments::EmbedArguments;

/// Texts that are encoded together, on all cores.
const TOGETHER: usize = 4096;

/// A text as a vector; JSON has the names that it has over HTTP.
#[derive(Serialize)]
struct Embedded<'a> {
    text: &'a str,
    vector: &'a [f32],
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subwords: Option<&'a [SubwordsOf]>,
    tokens: TextTokens,
}

#[derive(Serialize)]
struct Failed<'a, P> {
    text: &'a str,
    error: P,
}

/// Prints the vectors of texts, or writes them into a file.
pub(super) fn embed(arguments: &EmbedArguments) -> Result<(), CommandError> {
    let EmbedArguments { texts, out, replace, unknown, normalize, truncate, model } = arguments;
    let options = EncodeOptions { unknown: *unknown, normalize: *normalize, truncate: *truncate };
    if let Some(out) = out {
        check_is_free(out, *replace)?;
    }
    let model = Model::from(model_of(model)?.model);
    let Some(out) = out else {
        let mut failed = 0;
        each_batch(texts, TOGETHER, |some| {
            for text in some {
                failed += usize::from(!print_one(model.store(), text, &options)?);
            }
            Ok(())
        })?;
        return match failed {
            0 => Ok(()),
            1 => Err(CommandError::Usage("1 of the texts has no vector; it has its error".into())),
            _ => Err(CommandError::Usage(format!(
                "{failed} of the texts have no vector; each has its error"
            ))),
        };
    };
    let (mut vectors, mut count) = (Vec::new(), 0);
    each_batch(texts, TOGETHER, |some| {
        let all = model.encode_all(some, &options).map_err(|(place, error)| {
            CommandError::Usage(format!("text {}: {error}", count + place + 1))
        })?;
        count += some.len();
        vectors.extend(all);
        Ok(())
    })?;
    // A file that is there is whole.
    let failed = |source| CommandError::System { doing: "can't write the vectors", source };
    let partial = out.with_added_extension("partial");
    let mut file = std::fs::File::create(&partial).map_err(failed)?;
    npy::write_f32(&mut file, &[count as u64, model.dim() as u64], &vectors).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    replace_file(&partial, out).map_err(failed)?;
    say!("{}: {count} vectors of {} components", out.display(), model.dim())
}

/// Prints the line of a text, and says whether it has a vector.
fn print_one(rows: &dyn Rows, text: &str, options: &EncodeOptions) -> Result<bool, CommandError> {
    let found = encode(rows, text, options).map_err(|error: Error| error.with_suggestions(rows));
    let mut line = match &found {
        Ok(EncodedText { vector, notes: Notes { skipped, subwords, .. }, tokens }) => {
            let (skipped, subwords) = (skipped.as_deref(), subwords.as_deref());
            serde_json::to_vec(&Embedded { text, vector, skipped, subwords, tokens: *tokens })
        }
        Err(error) => serde_json::to_vec(&Failed { text, error: problem(error.clone()) }),
    }
    .expect("texts and finite numbers become JSON");
    line.push(b'\n');
    print(&line)?;
    Ok(found.is_ok())
}
