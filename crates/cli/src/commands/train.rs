//! `kindred train`: makes heads.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use kindred::ModelStore;
use kindred::heads::{
    Format, Made, Probabilities, Progress, STOP_WORDS, Settings, Texts, TextsOptions,
    TrainingOptions, plain_expander, quality_name, reach_of, threads, train_classifier as train,
    write_expander,
};
use kindred::prepare::TextEncoding;

use super::beside::Verification;
use super::progress::{Display, Step};
use super::signals::{Interrupt, NOTHING, REMOVED, is_stopped};
use super::{CommandError, check_is_free, heading, model_of, read_encoded_text, tokens};
use crate::arguments::{ColumnsArguments, TrainClassifierArguments, TrainExpanderArguments};

/// Labels whose texts are counted on standard error.
const NAMED: usize = 30;

/// Terms of a typical word.
const TERMS: usize = 20;

/// Trains a classifier, and writes its folder.
pub(super) fn train_classifier(arguments: &TrainClassifierArguments) -> Result<(), CommandError> {
    let started = Instant::now();
    let how = texts_options(&arguments.columns, arguments.format, arguments.skip_bad_rows);
    let read = |path: &Path| read_texts(path, arguments.columns.encoding, &how);
    let texts = read(&arguments.data)?;
    let dev = arguments.dev.as_deref().map(read).transpose()?;
    check_is_free(&arguments.out, arguments.replace)?;
    let model = model_of(&arguments.model)?.model;
    let options = options(arguments, &model);
    let verification = Verification::start(&model)?;
    let pool = threads(arguments.threads)
        .map_err(|source| CommandError::System { doing: "can't start threads", source })?;
    let labels = texts.labels();
    let mut counts: Vec<String> =
        labels.iter().take(NAMED).map(|(label, count)| format!("{label}: {count}")).collect();
    if labels.len() > NAMED {
        counts.push(format!("and {} more labels", labels.len() - NAMED));
    }
    eprintln!("{} texts; {}", texts.texts.len(), counts.join(", "));
    let probabilities = options.probabilities(&texts, dev.as_ref());
    if probabilities == Probabilities::Sigmoid && !arguments.sigmoid {
        eprintln!(
            "some texts have several labels or none, so each label gets a probability of its own"
        );
    }
    let measure = quality_name(probabilities);
    if texts.skipped > 0 {
        eprintln!("{} bad lines skipped", texts.skipped);
    }

    let (interrupt, mut display) = (Interrupt::watch(REMOVED), Display::new());
    let (all, mut of_epoch) = ((texts.texts.len() * options.settings.epochs) as u64, 0);
    let mut on_progress = |Progress { epoch, texts, loss, quality }: Progress| {
        of_epoch = of_epoch.max(texts);
        let done = ((epoch - 1) * of_epoch + texts) as u64;
        let note = format!("loss {loss:.4}");
        display.show(&Step { note: &note, ..Step::of("texts", done, all) });
        if let Some(quality) = quality {
            let quality = 100.0 * quality;
            display.say(&format!("epoch {epoch}: loss {loss:.4}, {measure} {quality:.2} %"));
        }
        interrupt.go_on()
    };
    let made = train(&model, &texts, dev.as_ref(), &options, &pool, &mut on_progress)?;
    interrupt.end();
    display.finish();
    let Some(made) = made else {
        let message = format!("stopped before the first epoch was complete; {NOTHING}");
        return Err(CommandError::Usage(message));
    };
    // Before the head is written: one learnt from a damaged model would look like any other.
    verification.finish(None)?;
    made.parts.write(&arguments.out, arguments.replace)?;
    if made.empty > 0 {
        eprintln!("{} texts without a word of the model were left out", made.empty);
    }
    let Made { quality, calibration: [before, after], epoch, dev, .. } = &made;
    say!(
        "{}: a head of {}; {measure} {:.2} % of {dev} texts after epoch {epoch}; calibration error \
         {after:.3} (before scaling {before:.3}); {:.1} s",
        arguments.out.display(),
        heading(None, model.name(), model.version()),
        100.0 * quality,
        started.elapsed().as_secs_f64()
    )?;
    if is_stopped() {
        let out = arguments.out.clone();
        return Err(CommandError::StoppedTraining { epoch: *epoch, out });
    }
    Ok(())
}

/// Makes an expander, and writes its folder.
pub(super) fn train_expander(arguments: &TrainExpanderArguments) -> Result<(), CommandError> {
    check_is_free(&arguments.out, arguments.replace)?;
    let model = model_of(&arguments.model)?.model;
    let verification = Verification::start(&model)?;
    let tokens = tokens(&model, arguments.tokens);
    let terms = arguments.terms.map_or(TERMS, NonZeroUsize::get);
    if terms > model.rows() && arguments.terms.is_some() {
        let message = format!("--terms: the model has {} words; ask for fewer", model.rows());
        return Err(CommandError::Usage(message));
    }
    let stop_words: &[&str] = if arguments.keep_stop_words { &[] } else { &STOP_WORDS };
    let reach = reach_of(&model, tokens.clone(), terms, stop_words, arguments.threads)?;
    let (mut description, weights) = plain_expander(&model, tokens, reach, stop_words);
    description.log1p = !arguments.linear;
    verification.finish(None)?;
    write_expander(&arguments.out, arguments.replace, &description, &weights, &model)?;
    say!(
        "{}: an expander over {}, {} terms; half of the frequent words have {terms} or more; reach \
         {reach:.3}; {} stop words left out",
        arguments.out.display(),
        heading(None, model.name(), model.version()),
        model.rows(),
        description.stop_rows(&model).len()
    )
}

/// How files of texts with labels are read.
pub(super) fn texts_options(
    columns: &ColumnsArguments,
    format: Option<Format>,
    skip_bad_rows: bool,
) -> TextsOptions {
    let ColumnsArguments { text_column, label_column, .. } = columns.clone();
    TextsOptions { format, text: text_column, label: label_column, skip_bad_rows }
}

/// Reads a file of texts with labels.
pub(super) fn read_texts(
    path: &Path,
    encoding: Option<TextEncoding>,
    options: &TextsOptions,
) -> Result<Texts, CommandError> {
    let name = path.display().to_string();
    let content = read_encoded_text(path, "a file of texts with labels", encoding)?;
    Ok(Texts::parse(&name, &content, options)?)
}

fn options(arguments: &TrainClassifierArguments, model: &ModelStore) -> TrainingOptions {
    let TrainClassifierArguments { dropout, learning_rate, .. } = *arguments;
    let settings = Settings {
        widths: arguments.widths.clone(),
        channels: arguments.channels,
        probabilities: match arguments.sigmoid {
            true => Probabilities::Sigmoid,
            false => Probabilities::Softmax,
        },
        fine_tune: !arguments.is_static,
        dropout,
        batch: arguments.batch,
        learning_rate,
        epochs: arguments.epochs,
        patience: arguments.patience,
        seed: arguments.seed,
        ..Settings::default()
    };
    let tokens = tokens(model, arguments.tokens);
    let TrainClassifierArguments { balance, other_words, add_words, .. } = *arguments;
    TrainingOptions { settings, tokens, balance, other_words, add_words }
}
