//! Columns by their names.

/// Why no column is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotFound {
    /// None has the name.
    Missing,
    /// These two have it equally.
    Several([usize; 2]),
}

/// The place of the column with this name; of one whose name differs in case, if none has exactly
/// this.
pub fn find(names: &[impl AsRef<str>], wanted: &str) -> Result<usize, NotFound> {
    let only = |is_it: &dyn Fn(&str) -> bool| {
        let mut places = (0..names.len()).filter(|&place| is_it(names[place].as_ref().trim()));
        match (places.next(), places.next()) {
            (None, _) => Err(NotFound::Missing),
            (Some(place), None) => Ok(place),
            (Some(first), Some(second)) => Err(NotFound::Several([first, second])),
        }
    };
    only(&|name| name == wanted).or_else(|error| match error {
        NotFound::Missing => only(&|name| same_in_any_case(name, wanted)),
        several => Err(several),
    })
}

/// Whether two names are equal, or differ in case only.
pub fn same_in_any_case(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
        || !(a.is_ascii() && b.is_ascii()) && a.to_lowercase() == b.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_name_wins_and_two_equal_ones_do_not() {
        for (names, wanted, expected) in [
            (&["id", "text"][..], "text", Ok(1)),
            (&["id", " Text "], "text", Ok(1)),
            (&["TEXT", "text", "Text"], "text", Ok(1)),
            (&["id", "ÉTIQUETTE"], "étiquette", Ok(1)),
            (&["TEXT", "id", "Text"], "text", Err(NotFound::Several([0, 2]))),
            (&["text", "id", "text"], "text", Err(NotFound::Several([0, 2]))),
            (&["id", "texts"], "text", Err(NotFound::Missing)),
            (&[], "text", Err(NotFound::Missing)),
        ] {
            assert_eq!(find(names, wanted), expected, "{names:?}");
        }
    }
}
