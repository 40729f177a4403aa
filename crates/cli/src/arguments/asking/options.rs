//! The query options as flags: all options that are declared with a flag ([`kindred::options`]).

use clap::error::Error;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use kindred::options::{DECLARATIONS, Declaration, Flag, Values};
use kindred::{Method, Options, Unknown, WithAttributes, with_options};

use crate::arguments::values::{number, value, within};

/// The options that all questions of a command share.
#[derive(Debug, Default, Clone)]
pub struct QuestionOptions(pub Options);

/// Reads the value of an option from its flag. An option without a flag is absent. `--method` is
/// declared by the commands that take expressions.
trait FromFlag: Sized {
    fn read(matches: &ArgMatches, name: &str) -> Option<Self>;
}

macro_rules! one_value {
    ($($type:ty),+) => {
        $(impl FromFlag for $type {
            fn read(matches: &ArgMatches, name: &str) -> Option<Self> {
                matches.try_get_one(name).ok().flatten().copied()
            }
        })+
    };
}

one_value!(u64, f64, Method, Unknown);

impl FromFlag for String {
    fn read(matches: &ArgMatches, name: &str) -> Option<Self> {
        matches.try_get_one::<Self>(name).ok().flatten().cloned()
    }
}

/// All, unless some are named.
impl FromFlag for WithAttributes {
    fn read(matches: &ArgMatches, name: &str) -> Option<Self> {
        let named: Vec<String> = FromFlag::read(matches, name)?;
        Some(if named == [""] { Self::All(true) } else { Self::Named(named) })
    }
}

/// A switch that is not given is `None`, not `false`.
impl FromFlag for bool {
    fn read(matches: &ArgMatches, name: &str) -> Option<Self> {
        matches.try_get_one::<bool>(name).ok().flatten().copied().filter(|&on| on)
    }
}

impl FromFlag for Vec<String> {
    fn read(matches: &ArgMatches, name: &str) -> Option<Self> {
        let words = matches.try_get_many::<String>(name).ok().flatten()?;
        Some(words.cloned().collect())
    }
}

macro_rules! read_all {
    ($matches:ident options { $($option:ident: $type:ty { $($about:tt)* })+ }) => {
        Options { $($option: <$type as FromFlag>::read($matches, stringify!($option)),)+ }
    };
}

impl FromArgMatches for QuestionOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self(with_options! { read_all! { matches } }))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let given = with_options! { read_all! { matches } };
        self.0 = given.or(&self.0);
        Ok(())
    }
}

impl Args for QuestionOptions {
    fn augment_args(command: Command) -> Command {
        augment(command, |_| true)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

macro_rules! names {
    (options { $($option:ident: $type:ty { $($about:tt)* })+ }) => { &[$(stringify!($option)),+] };
}

/// The names of the options that a question for ranks takes.
const OF_RANKS: &[&str] = with_options! { rank: names! {} };

/// Those of the options that a question for ranks takes.
#[derive(Debug, Default, Clone)]
pub struct RankOptions(pub Options);

impl FromArgMatches for RankOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        QuestionOptions::from_arg_matches(matches).map(|QuestionOptions(options)| Self(options))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0 = Self::from_arg_matches(matches)?.0.or(&self.0);
        Ok(())
    }
}

impl Args for RankOptions {
    fn augment_args(command: Command) -> Command {
        augment(command, |name| OF_RANKS.contains(&name))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Adds the flags of the options that are wanted.
fn augment(command: Command, is_wanted: impl Fn(&str) -> bool) -> Command {
    let flags = DECLARATIONS.iter().filter(|declared| is_wanted(declared.name));
    flags
        .filter_map(|declared| Some(argument(declared, declared.flag?)))
        .fold(command.next_help_heading("Query"), |command, argument| command.arg(argument))
}

fn argument(declared: &'static Declaration, flag: Flag) -> Arg {
    let argument = Arg::new(declared.name).long(flag.long).help(declared.help);
    let argument = match flag.short {
        Some(short) => argument.short(short),
        None => argument,
    };
    match declared.values {
        Values::Switch => argument.action(ArgAction::SetTrue),
        Values::Whole { from, to } => {
            let whole =
                value(declared.must_be.to_owned(), move |text| within::<u64>(text, from, to));
            argument.value_name(flag.value).value_parser(whole)
        }
        Values::Number => argument
            .value_name(flag.value)
            .value_parser(number::<f64>(declared.must_be, |_| true))
            .allow_negative_numbers(true),
        Values::Names { .. } => argument
            .value_name(flag.value)
            .action(ArgAction::Append)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("")
            .value_delimiter(',')
            .value_parser(value_parser!(String)),
        Values::Words { .. } => argument
            .value_name(flag.value)
            .action(ArgAction::Append)
            .value_parser(value_parser!(String))
            .allow_hyphen_values(true),
        Values::Text | Values::Name { .. } => {
            argument.value_name(flag.value).value_parser(value_parser!(String))
        }
    }
}
