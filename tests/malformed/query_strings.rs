//! Wrong parameters of GET requests.

use super::case::*;

pub(crate) fn query_strings() -> Vec<Case> {
    let invalid = |name, parameters: &str, field: &str| {
        let target = format!("/nearest?word=east&{parameters}");
        get(name, target, 422, "invalid_value").extra("field", field)
    };
    let request = |name, target: &str| get(name, target, 422, "invalid_request");
    let unknown = |name, target: &str, field: &str| {
        get(name, target, 422, "unknown_field").extra("field", field)
    };
    let words = |name, target: &str, field: &str| {
        get(name, target, 422, "invalid_value").extra("field", field)
    };
    let excluded = "exclude=x&".repeat(1001);
    vec![
        request("no parameter", "/nearest").detail("`word`"),
        request("no parameter behind the question mark", "/nearest?"),
        request("options alone", "/nearest?k=3").detail("`word`"),
        request("a word twice", "/nearest?word=east&word=west").detail("`word`"),
        request("a word and a text", "/nearest?word=east&text=east").detail("exactly one"),
        request("a text twice", "/nearest?text=east&text=east").detail("`text`"),
        request("k twice", "/nearest?word=east&k=1&k=1").detail("`k`"),
        request("a flag twice", "/nearest?word=east&include_query=true&include_query=true")
            .detail("`include_query`"),
        request("a vector", "/nearest?vector=1,0").detail("`vector`").detail("POST"),
        request("a vector beside a word", "/nearest?word=east&vector=[1,0]").detail("`vector`"),
        request("a list to exclude in one word", "/nearest?word=east&exclude=west,north")
            .detail("exclude=west&exclude=north"),
        request("queries", "/nearest?queries=[]").detail("`queries`").detail("POST"),
        request("no parameter of an analogy", "/analogy").detail("`expression`"),
        request("an expression twice", "/analogy?expression=east&expression=west")
            .detail("`expression`"),
        request("an expression and a word", "/analogy?expression=east&positive=west")
            .detail("exactly one"),
        request("queries of analogies", "/analogy?queries=[]").detail("POST"),
        unknown("a parameter that does not exist", "/nearest?word=east&surprise=1", "surprise")
            .detail("`surprise`"),
        unknown("a parameter that is misspelt", "/nearest?wrod=east", "wrod")
            .detail("did you mean `word`?"),
        unknown("a parameter in capitals", "/nearest?word=east&K=3", "K").detail("mean `k`?"),
        unknown("q", "/nearest?q=east", "q").detail("did you mean `word` or `text`?"),
        unknown("a query", "/nearest?query=east", "query").detail("mean `word` or `text`?"),
        unknown("a limit", "/nearest?word=east&limit=3", "limit").detail("did you mean `k`?"),
        unknown("top_k", "/nearest?word=east&top_k=3", "top_k").detail("did you mean `k`?"),
        unknown("topn", "/analogy?expression=east&topn=3", "topn").detail("did you mean `k`?"),
        unknown("a query of an analogy", "/analogy?q=east", "q").detail("mean `expression`?"),
        unknown("q of words", "/words?q=e", "q").detail("did you mean `prefix` or `word`?"),
        unknown("k of labels", "/classify?text=east&k=1", "k").detail("did you mean `top`?"),
        unknown("a limit of terms", "/expand?text=east&limit=1", "limit").detail("mean `top`?"),
        request("no text to classify", "/classify").detail("`text`"),
        request("no text to expand", "/expand?top=3").detail("`text`"),
        request("a text to classify twice", "/classify?text=a&text=b").detail("`text`"),
        request("several texts", "/classify?texts=a").detail("`texts`").detail("POST"),
        request("vectors of tokens", "/expand?text=a&vectors=1").detail("`vectors`"),
        words("top is a word", "/classify?text=east&top=all", "top").detail("not `all`"),
        words("top is 0", "/classify?text=east&top=0", "top"),
        words("threshold is 2", "/classify?text=east&threshold=2", "threshold").detail("not 2"),
        words("a format that does not exist", "/expand?text=east&format=xml", "format")
            .detail("not `xml`"),
        words("a huge threshold", "/classify?text=east&threshold=1e300", "threshold")
            .detail("not 1e300"),
        words("top is 1001", "/expand?text=east&top=1001", "top").detail("not 1001"),
        words("no time to classify", "/classify?text=east&timeout_ms=0", "timeout_ms")
            .detail("not 0"),
        unknown("a parameter without a name", "/nearest?word=east&=3", ""),
        unknown("a parameter of the other route", "/nearest?expression=east", "expression"),
        unknown("a parameter in brackets", "/nearest?word=east&exclude[]=west", "exclude[]"),
        unknown("a word of an analogy", "/analogy?word=east", "word").detail("positive"),
        unknown(
            "an unknown parameter before an unknown word",
            "/nearest?word=est&surprise=1",
            "surprise",
        ),
        invalid("k is a word", "k=ten", "k").detail("1 to 1000, not `ten`"),
        invalid("k is empty", "k=", "k").detail("not empty"),
        invalid("k has no value", "k", "k"),
        invalid("k is 0, by GET", "k=0", "k"),
        invalid("k is 1001, by GET", "k=1001", "k"),
        invalid("k is negative, by GET", "k=-1", "k"),
        invalid("k has a space", "k=+5", "k"),
        invalid("k has a fraction", "k=1.5", "k"),
        invalid("k is 30 digits long", "k=100000000000000000000000000000", "k"),
        invalid("k is in Arabic digits", "k=%D9%A5", "k"),
        invalid("vocab_limit is 0, by GET", "vocab_limit=0", "vocab_limit"),
        invalid("vocab_limit is a word", "vocab_limit=all", "vocab_limit"),
        invalid("include_query is yes", "include_query=yes", "include_query")
            .detail("true or false"),
        invalid("include_query is 1", "include_query=1", "include_query"),
        invalid("include_query is in capitals", "include_query=TRUE", "include_query"),
        invalid("with_vectors is empty", "with_vectors=", "with_vectors"),
        invalid("fold_case is yes", "fold_case=yes", "fold_case"),
        invalid("explain has no value", "explain", "explain"),
        get(
            "a method that does not exist, by GET",
            "/analogy?expression=east&method=add",
            422,
            "invalid_value",
        )
        .extra("field", "method")
        .detail("`3cosadd`"),
        request("a method twice", "/analogy?expression=east&method=3cosadd&method=3cosmul")
            .detail("`method`"),
        unknown("a method of neighbours, by GET", "/nearest?word=east&method=3cosadd", "method"),
        invalid("unknown is empty", "unknown=", "unknown").detail("`error`"),
        invalid("unknown is yes", "unknown=yes", "unknown"),
        invalid("min_score is nan", "min_score=nan", "min_score"),
        invalid("min_score is inf", "min_score=inf", "min_score"),
        invalid("min_score is minus infinity", "min_score=-infinity", "min_score"),
        invalid("min_score is 1e999", "min_score=1e999", "min_score"),
        invalid("min_score is empty", "min_score=", "min_score"),
        invalid("min_score has a comma", "min_score=0,5", "min_score"),
        request("a minimum above the maximum", "/nearest?word=east&min_score=0.5&max_score=0.4")
            .detail("`min_score` (0.5)")
            .detail("`max_score` (0.4)")
            .detail("exchange them"),
        invalid("1001 excluded words", &excluded, "exclude").detail("1000"),
        request("no parameter of the words", "/words").detail("`prefix`").detail("`word`"),
        request("a prefix and a word", "/words?prefix=e&word=east").detail("exactly one"),
        request("a prefix twice", "/words?prefix=e&prefix=w").detail("`prefix`"),
        request("a limit for one word", "/words?word=east&limit=1").detail("`limit`"),
        request("a vector for many words", "/words?prefix=e&with_vector=true")
            .detail("`with_vector`"),
        words("limit is 0", "/words?prefix=e&limit=0", "limit").detail("1 to 1000, not 0"),
        words("limit is 1001", "/words?prefix=e&limit=1001", "limit"),
        words("limit is a word", "/words?prefix=e&limit=all", "limit"),
        words("with_vector is 1", "/words?word=east&with_vector=1", "with_vector"),
        words("with_vector is yes", "/words/east?with_vector=yes", "with_vector"),
        unknown("a parameter of the words that does not exist", "/words?prefix=e&k=1", "k")
            .detail("did you mean `limit`?"),
        unknown("a parameter of a word that does not exist", "/words/east?limit=1", "limit"),
        request("a parameter beside pairs", "/similarity?k=3")
            .detail("`k`")
            .posting(r#"{"pairs": [["east", "west"]]}"#),
        request("a parameter of the model", "/model?verbose=1").detail("`verbose`"),
        request("a parameter of the start page", "/?word=east").detail("`word`"),
        request("a parameter of the contract", "/openapi.yaml?format=json").detail("`format`"),
        request("a parameter of liveness", "/health/live?now").detail("`now`"),
        request("a parameter of readiness", "/health/ready?timeout=1").detail("`timeout`"),
        post(
            "a parameter beside a body",
            "/nearest?k=3",
            r#"{"word": "east"}"#,
            422,
            "invalid_request",
        )
        .detail("`k`"),
        post(
            "a word beside a body",
            "/analogy?word=east",
            r#"{"expression": "east"}"#,
            422,
            "invalid_request",
        )
        .detail("`word`"),
    ]
}
