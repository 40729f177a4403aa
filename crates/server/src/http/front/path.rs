//! A model's name in a path, and the path without it.

use std::borrow::Cow;

use axum::http::Uri;
use percent_encoding::percent_decode_str;

use crate::http::{ApiError, routes};

/// The model's name in a path `/models/NAME/ROUTE`, and the route's path.
pub(super) fn named_model(path: &str) -> Option<Result<(Cow<'_, str>, &str), ApiError>> {
    let (name, path) = routes::split_model_name(path)?;
    // A path is not form-encoded as parameters are, so a plus is a plus.
    let name = percent_decode_str(name).decode_utf8();
    let not_utf8 = |_| ApiError::NotUtf8 { what: "the path".to_owned() };
    Some(name.map(|name| (name, path)).map_err(not_utf8))
}

/// The URI with another path: a part of its own path, or a route's path.
pub(super) fn with_path(uri: &Uri, path: &str) -> Uri {
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    let mut parts = uri.clone().into_parts();
    let target = format!("{path}{query}").parse();
    parts.path_and_query = Some(target.expect("a part of a path is one, behind a slash"));
    Uri::from_parts(parts).expect("only the path is another")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models_are_taken_out_of_paths() {
        let of = |path: &'static str| {
            let (name, rest) = named_model(path)?.ok()?;
            Some((name.into_owned(), rest.to_owned()))
        };
        let expected = |name: &str, rest: &str| Some((name.to_owned(), rest.to_owned()));
        assert_eq!(of("/models/en/nearest"), expected("en", "/nearest"));
        assert_eq!(of("/models/a%2Fb+c/words/x"), expected("a/b+c", "/words/x"));
        assert_eq!(of("/models/en"), expected("en", "/model"));
        assert_eq!(
            (of("/models/en/"), of("/models//x")),
            (expected("en", "/model"), expected("", "/x"))
        );
        assert_eq!((of("/models"), of("/modelsen/x"), of("/models/%ff/x")), (None, None, None));

        for (uri, path, left) in [
            ("/models/en/nearest?word=a%20b", "/nearest", "/nearest?word=a%20b"),
            ("http://host:1/models/en?k=1", "/model", "http://host:1/model?k=1"),
            ("/models/en/words/x", "/words/x", "/words/x"),
        ] {
            assert_eq!(with_path(&uri.parse().unwrap(), path), left);
        }
    }
}
