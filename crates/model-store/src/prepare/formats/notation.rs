//! The notations of numbers that are not read, such as decimal commas and lists of Python, and
//! their cures.

pub(super) const TABS: &str = "the line has tabs; fields must be separated by single spaces, or, \
                               with --separator tab, all of them by tabs";

const DECIMAL_COMMAS: &str = "write points instead of decimal commas: \
                              sed -E 's/([0-9]),([0-9])/\\1.\\2/g' FILE";
const BRACKETS: &str = "write the components without the brackets and commas of a Python list, \
                        separated by single spaces";
const SPARSE: &str = "pairs of an index and a value are a sparse vector; write all components";
pub(super) const SEMICOLONS: &str = "if semicolons separate its fields, make them tabs, and add \
                                     --separator tab: tr ';' '\\t' < FILE";

/// A cure, as it goes on after a fault.
pub(super) fn after(cure: Option<&str>) -> String {
    cure.map_or_else(String::new, |cure| format!("; {cure}"))
}

/// The cure if a field is no number because of its notation.
pub(super) fn notation(field: &[u8]) -> Option<&'static str> {
    /// Longer fields are no number.
    const LONGEST: usize = 100;
    let text = std::str::from_utf8(field).ok().filter(|text| text.len() <= LONGEST)?;
    let is_number = |text: &str| text.parse::<f32>().is_ok();
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_decimal = |(whole, rest): (&str, &str)| {
        whole.ends_with(|c: char| c.is_ascii_digit())
            && rest.starts_with(|c: char| c.is_ascii_digit())
            && is_number(&format!("{whole}.{rest}"))
    };
    let inner = text.strip_prefix("tensor").unwrap_or(text);
    let inner = inner.trim_matches(|c: char| "[](),".contains(c));
    if is_number(text) {
        None
    } else if text.split_once(',').is_some_and(is_decimal) {
        Some(DECIMAL_COMMAS)
    } else if inner != text && is_number(inner) {
        Some(BRACKETS)
    } else if text.split_once(':').is_some_and(|(i, x)| are_digits(i) && is_number(x)) {
        Some(SPARSE)
    } else if text.contains(';') && text.split(';').all(|part| is_number(&part.replace(',', "."))) {
        Some(SEMICOLONS)
    } else {
        text.contains('\t').then_some(TABS)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Parser as _;
    use super::super::text::Lines;
    use super::*;

    #[test]
    fn numbers_in_other_notations_get_the_cure() {
        let lines = Lines { dim: 2, ..Lines::default() };
        let reason = |line: &str| {
            let parsed = lines.parse(line.as_bytes(), 0);
            assert_eq!(
                (parsed.records, parsed.components.len()),
                (1, 0),
                "a bad line adds nothing"
            );
            parsed.first_bad.unwrap().reason
        };
        for (line, number, cure) in [
            ("cat 0,5 -1,25", "-1,25", DECIMAL_COMMAS),
            ("cat 1,5e-3 2", "1,5e-3", DECIMAL_COMMAS),
            ("cat [0.5 1]", "1]", BRACKETS),
            ("cat [0.5, 1]", "1]", BRACKETS),
            ("cat 0.5, 1", "0.5,", BRACKETS),
            ("cat tensor([0.5, 1.])", "1.])", BRACKETS),
            ("cat 9:0.5 17:1", "17:1", SPARSE),
            ("cat 1 2\t", "2\t", TABS),
            ("cat 1 2;3", "2;3", SEMICOLONS),
        ] {
            let said = reason(line);
            assert!(said.ends_with(&format!("is not a number: `{number}`; {cure}")), "{said}");
        }
        assert_eq!(reason("cat 9:0.5"), format!("1 component instead of 2; {SPARSE}"));
        for line in ["cat , 1", "cat a,b 1", "cat ] 1", "cat 1,2,3 1", "cat a:1 1", "cat ; 1"] {
            assert!(reason(line).ends_with('`'), "{line}");
        }
    }
}
