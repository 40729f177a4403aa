//! Commands that train heads and ask them.

mod classifiers;
mod expanders;

use std::path::PathBuf;

use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use clap::{Arg, Args, Subcommand};
use kindred::heads::{Cut, Tokeniser, Tokens};

pub(crate) use classifiers::{
    ClassifyArguments, ColumnsArguments, ImportHeadArguments, LabelArguments,
    TrainClassifierArguments,
};
pub(crate) use expanders::{ExpandArguments, TermArguments, TrainExpanderArguments};

use super::values::{one_of, whole};

/// The kinds of head that can be trained.
#[derive(Debug, Subcommand)]
#[command(after_help = TRAIN_EXAMPLES)]
pub enum TrainCommand {
    /// Train a text classifier
    Classifier(Box<TrainClassifierArguments>),
    /// Make an expander of texts to words near theirs
    Expander(Box<TrainExpanderArguments>),
}

const TRAIN_EXAMPLES: &str = "\
Example:
  kindred train classifier --data reviews.csv --out heads/reviews";

/// The model that a command asks.
#[derive(Debug, Clone, Args)]
pub struct ModelArguments {
    /// Model folder written by `kindred prepare` [default: KINDRED_MODEL, or the model of the
    /// settings file, or the built-in model]
    #[arg(long, value_name = "[NAME=]DIR", value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,
    /// Folder in which the prepared built-in model is stored [default: the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
}

/// The model of commands that also take it without its flag.
#[derive(Debug, Clone, Args)]
pub struct ModelOrFolder {
    #[command(flatten)]
    given: ModelArguments,
    /// The same as --model [NAME=]DIR
    #[arg(value_name = "[NAME=]DIR", value_parser = NonEmptyStringValueParser::new())]
    #[arg(hide = true, conflicts_with = "model")]
    folder: Option<String>,
}

impl ModelOrFolder {
    /// The model, with its flag or without.
    pub fn arguments(&self) -> ModelArguments {
        let ModelArguments { model, cache_dir } = self.given.clone();
        ModelArguments { model: model.or_else(|| self.folder.clone()), cache_dir }
    }
}

/// A running service that answers instead.
#[derive(Debug, Default, Clone, Args)]
pub struct ServiceArguments {
    /// Query a running service: http(s)://HOST:PORT, or http(s)://HOST:PORT/models/NAME for one of
    /// several models. --head is the name of one of its heads then
    #[arg(long, conflicts_with_all = ["model", "cache_dir", "threads"])]
    pub url: Option<String>,
    /// API key of the service. Other users of this machine can see this flag; the variable
    /// KINDRED_API_KEY is safer
    #[arg(long, value_name = "KEY", requires = "url")]
    pub api_key: Option<String>,
}

/// Describes `--model` as a folder `that` …
pub(super) fn model_folder(that: &str) -> impl FnMut(Arg) -> Arg {
    let help = format!(
        "Model folder {that} [default: KINDRED_MODEL, or the model of the settings file, or the built-in model]"
    );
    move |argument| match argument.get_id() == "model" {
        true => argument.help(&help),
        false => argument,
    }
}

/// How texts become tokens of a new head.
#[derive(Debug, Clone, Copy, Args)]
pub struct TokensArguments {
    /// Splitting of texts: unicode (the first form that the model has: as typed, without signs, as
    /// the Treebank splits, by Unicode's word boundaries), ptb (as the Penn Treebank, whatever the
    /// model has) or words (letters and digits)
    #[arg(long, value_parser = tokenisers(), default_value = "unicode", help_heading = "Texts")]
    pub tokeniser: Tokeniser,
    /// The most tokens of a text; longer texts are cut
    #[arg(long, value_name = "N", default_value_t = 512, help_heading = "Texts")]
    #[arg(value_parser = whole::<usize>(1, Tokens::MOST as u64))]
    pub limit: usize,
    /// The end at which long texts are cut
    #[arg(long, value_parser = cuts(), default_value = "end", help_heading = "Texts")]
    pub cut: Cut,
}

/// Passes over the data that anyone waits for.
const MOST_EPOCHS: u64 = 1_000_000;

fn tokenisers() -> impl TypedValueParser<Value = Tokeniser> {
    one_of([Tokeniser::Unicode, Tokeniser::Ptb, Tokeniser::Words], |one| match one {
        Tokeniser::Unicode => "unicode",
        Tokeniser::Ptb => "ptb",
        Tokeniser::Words => "words",
    })
}

fn cuts() -> impl TypedValueParser<Value = Cut> {
    one_of([Cut::End, Cut::Start], |one| match one {
        Cut::End => "end",
        Cut::Start => "start",
    })
}
