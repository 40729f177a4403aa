//! Names that other services have for fields and parameters of this one, and names that are
//! misspelt: what was meant, for messages.

use crate::config::likest;

/// Fields, and the names that other services have for them. In small letters, without the signs
/// between words.
const OTHERS: &[(&str, &[&str])] = &[
    ("k", COUNTS),
    ("top", COUNTS),
    ("limit", COUNTS),
    ("word", &["q", "query", "w", "term", "token", "key", "name", "input"]),
    (
        "text",
        &["q", "query", "word", "sentence", "phrase", "document", "content", "input", "prompt"],
    ),
    ("expression", &["q", "query", "word", "text", "expr", "formula", "analogy", "input"]),
    ("prefix", &["q", "query", "startswith", "beginswith", "start", "search"]),
    ("vector", &["embedding", "vec", "queryvector"]),
    ("vectors", &["embeddings", "vecs"]),
    ("texts", &["queries", "documents", "sentences", "inputs", "instances", "batch"]),
    ("queries", &["batch", "words", "texts", "vectors", "items", "inputs"]),
    ("words", &["candidates", "targets", "terms", "items"]),
    ("pairs", &["words", "items"]),
    ("positive", &["add", "plus"]),
    ("negative", &["subtract", "minus"]),
    ("offset", &["skip", "from", "start", "page"]),
    ("exclude", &["ignore", "without", "blacklist", "not"]),
    ("include_query", &["includeinput", "includeself", "include"]),
    ("vocab_limit", &["restrictvocab", "vocab", "maxrows", "rows"]),
    ("min_score", &["threshold", "minsimilarity", "scorethreshold", "cutoff", "min"]),
    ("max_score", &["maxsimilarity", "max"]),
    ("threshold", &["minprobability", "minscore", "cutoff", "min"]),
    ("min_weight", &["threshold", "minscore", "cutoff", "min"]),
    ("max_ratio", &["ratio"]),
    ("filter", &["filters", "filterby", "where", "facet", "facets", "condition", "fq"]),
    ("distinct", &["groupby", "group", "collapse", "dedup", "unique", "distinctattribute"]),
    ("with_vectors", &["vectors", "vector", "includevectors", "returnvectors"]),
    ("with_attributes", &["attributes", "withpayload", "payload", "includefields", "fields"]),
    ("with_vector", &["vector", "includevector", "returnvector"]),
    ("timeout_ms", &["timeout", "deadline"]),
    ("fold_case", &["ignorecase", "caseinsensitive", "lowercase", "lower"]),
    ("explain", &["explanation", "debug"]),
    ("explain_label", &["label"]),
    ("head", &["model", "classifier", "expander"]),
    ("format", &["form", "output", "type"]),
    ("method", &["formula", "mode"]),
];

/// Names for a number of answers.
const COUNTS: &[&str] = &[
    "k",
    "top",
    "limit",
    "topk",
    "topn",
    "n",
    "num",
    "count",
    "size",
    "max",
    "maxresults",
    "nresults",
    "numresults",
    "neighbors",
    "neighbours",
    "nneighbors",
    "pagesize",
];

/// Longer names are not compared.
const LONGEST: usize = 64;

/// Shorter names are like many others.
const SHORTEST: usize = 3;

/// A question in a message that names an unknown field: ` (did you mean `k`?)`, or nothing. `field`
/// may have the path to it.
pub(in crate::http) fn did_you_mean(field: &str, known: &[String]) -> String {
    let name = field.rsplit("].").next().unwrap_or(field);
    let meant: Vec<String> = meant(name, known).iter().map(|name| format!("`{name}`")).collect();
    if meant.is_empty() {
        String::new()
    } else {
        format!(" (did you mean {}?)", meant.join(" or "))
    }
}

/// The known names that this one may stand for: the same in another spelling, those that others
/// call so, or else the one that is most like it.
fn meant<'a>(name: &str, known: &'a [String]) -> Vec<&'a str> {
    if name.len() > LONGEST {
        return Vec::new();
    }
    let (plain, known) = (plain(name), || known.iter().map(String::as_str));
    if let Some(same) = known().find(|known| self::plain(known) == plain) {
        return vec![same];
    }
    let is_called_so = |known: &&str| {
        OTHERS
            .iter()
            .any(|(field, names)| field == known && names.iter().any(|name| *name == plain))
    };
    let others: Vec<&str> = known().filter(is_called_so).collect();
    if others.is_empty() && name.len() >= SHORTEST {
        return likest(name, known()).into_iter().collect();
    }
    others
}

/// A name without capitals, and without the signs that others have in it: `topK`, `top-k`.
fn plain(name: &str) -> String {
    let mut plain = name.to_lowercase();
    plain.retain(|c| !['_', '-', '[', ']', ' '].contains(&c));
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(field: &str, known: &[&str]) -> String {
        let known: Vec<String> = known.iter().map(|&name| name.to_owned()).collect();
        did_you_mean(field, &known)
    }

    #[test]
    fn names_of_others_and_misspelt_names_are_understood() {
        let nearest = ["word", "text", "k", "exclude", "min_score", "with_vectors", "timeout_ms"];
        for (field, meant) in [
            ("q", " (did you mean `word` or `text`?)"),
            ("query", " (did you mean `word` or `text`?)"),
            ("limit", " (did you mean `k`?)"),
            ("top_k", " (did you mean `k`?)"),
            ("topK", " (did you mean `k`?)"),
            ("K", " (did you mean `k`?)"),
            ("minScore", " (did you mean `min_score`?)"),
            ("min-score", " (did you mean `min_score`?)"),
            ("exclude[]", " (did you mean `exclude`?)"),
            ("wrod", " (did you mean `word`?)"),
            ("timeout", " (did you mean `timeout_ms`?)"),
            ("7", ""),
            ("", ""),
        ] {
            assert_eq!(of(field, &nearest), meant, "{field}");
        }
        assert_eq!(of("positive[0].Weight", &["word", "weight"]), " (did you mean `weight`?)");
        assert_eq!(of("k", &["prefix", "limit", "word"]), " (did you mean `limit`?)");
        assert_eq!(of("limit", &["text", "head", "top"]), " (did you mean `top`?)");
        assert_eq!(of("word", &["text", "head", "top"]), " (did you mean `text`?)");
        assert_eq!(of("queries", &["text", "texts", "head"]), " (did you mean `texts`?)");
        assert_eq!(of("text", &["expression", "positive"]), " (did you mean `expression`?)");
        assert_eq!(of(&"k".repeat(1000), &nearest), "");
    }

    #[test]
    fn a_name_of_others_is_written_as_it_is_compared() {
        for (field, names) in OTHERS {
            for name in *names {
                assert_eq!(plain(name), *name, "{field}");
            }
        }
    }
}
