//! `kindred train expander`: makes expanders.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use kindred::heads::{
    ExpanderDescription, ExpanderLoss, ExpanderMeans, ExpanderProgress, ExpanderSettings,
    ExpanderWeights, MadeExpander, Pairs, StartBias, plain_expander, reach_of,
    train_expander as train, write_expander,
};
use model_store::ModelStore;

use super::beside::Verification;
use super::{
    CommandError, check_is_free, model_of_head, prepare, progress, read_text, threads, tokens,
};
use crate::cli::TrainExpanderArguments;

/// Terms of a typical word without data, and of a typical text when training starts.
const TERMS: [usize; 2] = [20, 100];

/// Makes an expander, and writes its folder.
///
/// # Errors
/// If the data, the model or the options can't be used, or the folder can't be written.
pub fn train_expander(arguments: &TrainExpanderArguments) -> Result<(), CommandError> {
    let started = Instant::now();
    let read = |path: &Path| read_pairs(path, arguments.skip_bad_rows);
    let data = arguments.data.as_deref().map(read).transpose()?;
    let dev = arguments.dev.as_deref().map(read).transpose()?;
    check_is_free(&arguments.out, arguments.replace)?;
    let model = model_of_head(&arguments.model)?.model;
    let verification = Verification::start(&model)?;
    let write = |description: &ExpanderDescription, weights: &ExpanderWeights| {
        write_expander(&arguments.out, arguments.replace, description, weights, &model)
    };
    let out = arguments.out.display();
    let Some(data) = data else {
        let tokens = tokens(&model, arguments.tokens);
        let terms = arguments.terms.map_or(TERMS[0], |terms| terms.get());
        if terms > model.rows() && arguments.terms.is_some() {
            let message = format!("--terms: the model has {} words; ask for fewer", model.rows());
            return Err(CommandError::Usage(message));
        }
        let reach = reach_of(&model, tokens.clone(), terms, arguments.threads)
            .map_err(|error| CommandError::Usage(error.to_string()))?;
        let (mut description, weights) = plain_expander(&model, tokens, reach);
        description.log1p = !arguments.linear;
        verification.finish()?;
        write(&description, &weights)?;
        return say!(
            "{out}: {} terms; half of the frequent words have {terms} or more; reach {reach:.3}",
            model.rows()
        );
    };
    let made = learn(arguments, &model, &data, &dev.unwrap_or_default())?;
    verification.finish()?;
    write(&made.description, &made.weights)?;
    if made.left_out > 0 {
        eprintln!(
            "{} pairs were left out: the model has no word of the query or the text",
            made.left_out
        );
    }
    if let Some(reason) = &made.gpu_failure {
        eprintln!("the GPU failed, and the CPU went on alone, with the same result: {reason}");
    }
    let [pairs, dev] = made.pairs;
    let device = if made.on_gpu { "on a GPU" } else { "on the CPU" };
    let quality = match made.quality {
        Some(quality) => format!("mean reciprocal rank {quality:.4} of {dev} pairs"),
        None => {
            let steps = arguments.warm_up;
            format!("not measured: no epoch after the warm-up of {steps} steps was complete")
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    say!("{out}: learnt from {pairs} pairs; {quality}; {seconds:.1} s {device}")
}

fn learn(
    arguments: &TrainExpanderArguments,
    model: &Arc<ModelStore>,
    data: &Pairs,
    dev: &Pairs,
) -> Result<MadeExpander, CommandError> {
    let pool = threads(arguments.threads)?;
    let settings = settings(arguments);
    eprintln!("{} pairs", data.pairs.len());
    if data.skipped > 0 {
        eprintln!("{} bad lines skipped", data.skipped);
    }
    let interrupted = prepare::watch_for_interrupt()?;
    let bar = progress::bar((data.pairs.len() * settings.epochs) as u64, "pairs");
    let mut of_epoch = 0;
    let mut on_progress =
        |ExpanderProgress { epoch, examples, means, quality, .. }: ExpanderProgress| {
            of_epoch = of_epoch.max(examples);
            bar.set_position(((epoch - 1) * of_epoch + examples) as u64);
            let ExpanderMeans { loss, flops_queries, flops_texts, terms_per_query, terms_per_text } =
                means;
            let said = format!(
                "loss {loss:.4}, {terms_per_query:.0} terms a query and {terms_per_text:.0} a text, FLOPS {flops_queries:.2} and \
             {flops_texts:.2}"
            );
            match quality {
                Some(quality) => {
                    let line = format!("epoch {epoch}: {said}, mean reciprocal rank {quality:.4}");
                    // Without a terminal the bar says nothing.
                    if bar.is_hidden() { eprintln!("{line}") } else { bar.println(line) }
                }
                None => bar.set_message(said),
            }
            match interrupted.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
    let tokens = tokens(model, arguments.tokens);
    let terms = arguments.vocab.get();
    let on = (&arguments.device, &pool);
    let made = train(model, [data, dev], tokens, terms, &settings, on, &mut on_progress);
    bar.finish_and_clear();
    made.map_err(|error| CommandError::Usage(error.to_string()))
}

/// Reads a file of queries with relevant texts.
fn read_pairs(path: &Path, skip_bad_rows: bool) -> Result<Pairs, CommandError> {
    let content = read_text(path, "a file of queries with relevant texts")?;
    Ok(Pairs::parse(&path.display().to_string(), &content, skip_bad_rows)?)
}

fn settings(arguments: &TrainExpanderArguments) -> ExpanderSettings {
    let &TrainExpanderArguments {
        temperature, margin, flops_queries, flops_texts, warm_up, ..
    } = arguments;
    let &TrainExpanderArguments { learning_rate, bias_learning_rate, own_vectors, seed, .. } =
        arguments;
    let terms = arguments.terms.map_or(TERMS[1], |terms| terms.get());
    ExpanderSettings {
        loss: match arguments.loss.as_str() {
            "margin" => ExpanderLoss::Margin { margin },
            _ => ExpanderLoss::InfoNce { temperature },
        },
        log1p: !arguments.linear,
        flops_queries,
        flops_texts,
        warm_up,
        bias: StartBias::TermsPerText(terms as f32),
        projection: !arguments.no_projection,
        own_vectors,
        batch: arguments.batch,
        epochs: arguments.epochs,
        learning_rate,
        bias_learning_rate,
        seed,
        ..ExpanderSettings::default()
    }
}
