//! Names that were misspelt.

/// The known name that is most like this one, if one is.
pub(crate) fn likest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Of strsim's measure, where 1 is equal: as clap has it for flags.
    const ALIKE: f64 = 0.7;
    let name = name.to_lowercase();
    let likeness = |known: &'a str| (known, strsim::jaro(&name, &known.to_lowercase()));
    let likest = known.into_iter().map(likeness).max_by(|(_, a), (_, b)| a.total_cmp(b));
    likest.filter(|(_, likeness)| *likeness > ALIKE).map(|(known, _)| known)
}

/// A question at the end of a message: `; did you mean info?`, or nothing.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    likest(name, known).map_or_else(String::new, |likest| format!("; did you mean {likest}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_alike_is_suggested() {
        let levels = ["error", "warn", "info", "debug"];
        for (name, likest_of) in
            [("inf", "info"), ("warning", "warn"), ("err", "error"), ("DEBG", "debug")]
        {
            assert_eq!(likest(name, levels), Some(likest_of), "{name}");
        }
        for name in ["", "xyz", "7"] {
            assert_eq!(likest(name, levels), None, "{name}");
            assert_eq!(did_you_mean(name, levels), "");
        }
        assert_eq!(did_you_mean("ifno", levels), "; did you mean info?");
    }
}
