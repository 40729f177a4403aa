//! Paths that are no routes: the route that was meant, for messages. Other services have other
//! names for theirs, and paths are misspelt.

use super::table::ROUTES;
use super::{index, split_model_name};
use crate::config::likest;

/// Routes, and other services' names for them: the first part of a path, in small letters and with
/// dashes.
const OTHERS: &[(&str, &[&str])] = &[
    (
        "/nearest",
        &[
            "neighbors",
            "neighbours",
            "neighbor",
            "neighbour",
            "nearest-neighbors",
            "nearest-neighbours",
            "search",
            "similar",
            "most-similar",
            "similar-words",
            "synonyms",
            "knn",
            "nn",
            "query",
            "find",
            "closest",
            "lookup",
        ],
    ),
    ("/analogy", &["analogies", "arithmetic", "expression", "vector-math"]),
    ("/rank", &["ranks", "ranking", "rerank"]),
    ("/count", &["counts", "facets", "facet", "total"]),
    ("/similarity", &["similarities", "compare", "cosine", "distance", "score"]),
    ("/odd-one-out", &["doesnt-match", "does-not-match", "outlier", "odd"]),
    ("/classify", &["classifier", "classification", "predict", "labels", "label", "sentiment"]),
    ("/expand", &["expander", "expansion", "terms", "splade", "sparse"]),
    ("/words", &["word", "vocab", "vocabulary", "autocomplete", "complete", "suggest", "prefix"]),
    ("/words/WORD?with_vector=true", &["vector", "vectors"]),
    ("/embed", &["embedding", "embeddings", "encode", "encoder", "vectorize", "embed-text"]),
    ("/health/live or /health/ready", &["health", "healthcheck", "health-check", "status", "ping"]),
    ("/health/live", &["healthz", "livez", "live", "liveness", "alive"]),
    ("/health/ready", &["readyz", "ready", "readiness"]),
    ("/metrics", &["prometheus", "stats", "statistics"]),
    ("/model", &["metadata"]),
    ("/version", &["about", "build", "buildinfo", "build-info"]),
    ("/docs", &["swagger", "swagger-ui", "redoc", "documentation", "api-docs", "help"]),
    (
        "/openapi.yaml",
        &[
            "openapi.json",
            "openapi.yml",
            "openapi",
            "swagger.json",
            "swagger.yaml",
            "spec",
            "schema",
        ],
    ),
    ("/", &["index.html", "index.htm", "explorer", "home", "ui", "app", "demo"]),
    ("/admin/reload", &["reload", "admin"]),
];

/// The first parts of others' paths, before the name of a route.
const BEFORE: &[&str] = &["api", "rest", "v0", "v1", "v2"];

/// Longer paths are not compared.
const LONGEST: usize = 128;

/// Shorter names are like many others.
const SHORTEST: usize = 3;

/// The minimum similarity to one of [`OTHERS`]: higher than to a route's own name, because there
/// are many of them.
const ALIKE: f64 = 0.9;

/// The route, or the routes, that may be meant by a path that is none.
pub(super) fn meant(path: &str) -> Option<String> {
    if path.len() > LONGEST {
        return None;
    }
    let (model, rest) = match split_model_name(path) {
        Some((_, rest)) => (path.strip_suffix(rest)?, rest),
        None => ("", path),
    };
    let rest = rest.replace("%2F", "/").replace("%2f", "/");
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let is_before = |part: &&&str| BEFORE.contains(&&*part.to_ascii_lowercase());
    let before = parts.iter().take_while(is_before).count();
    let parts = &parts[before..];
    if model.is_empty()
        && let Some(meant) = behind_a_name(parts)
    {
        return Some(meant);
    }
    let route = route(parts)?;
    let path_of_route = route.split('?').next().unwrap_or(&route);
    let is_of_a_model = ROUTES.get(index(path_of_route)).is_some_and(|route| route.is_of_a_model());
    let meant = if is_of_a_model { format!("{model}{route}") } else { route };
    (meant != path).then_some(meant)
}

/// The route behind a name that is part of no path. It may be a model's, as in `/demo/nearest`, or
/// the prefix that a proxy should have removed.
fn behind_a_name(parts: &[&str]) -> Option<String> {
    let (first, others) = parts.split_first()?;
    let plain = plain(first);
    let (is_of_model, name, others) = match others {
        [name, others @ ..] if plain == "model" || plain == "models" => (true, name, others),
        _ => (false, first, others),
    };
    let is_of_others =
        OTHERS.iter().any(|(route, names)| *route != "/" && names.contains(&&plain[..]));
    if !is_of_model && (is_of_others || index(&format!("/{plain}")) < ROUTES.len()) {
        return None;
    }
    if others.is_empty() {
        return None;
    }
    let rest = joined(others);
    let route = ROUTES.get(index(&rest))?;
    if !route.is_of_a_model() || split_model_name(&rest).is_some() {
        return Some(rest);
    }
    let of_model = format!("/models/{name}{rest}");
    Some(if is_of_model { of_model } else { format!("{rest} or {of_model}") })
}

/// The route for the parts of a path.
fn route(parts: &[&str]) -> Option<String> {
    let (first, others) = parts.split_first()?;
    let plain = plain(first);
    // In another spelling. A word keeps its capitals.
    let others = joined(others);
    let spellings = [format!("/{plain}{others}"), format!("/{plain}{}", others.to_lowercase())];
    let is_route = |path: &String| index(path) < ROUTES.len() && path != "/docs/";
    if let Some(same) = spellings.into_iter().find(is_route) {
        return Some(same);
    }
    if let Some((route, _)) = OTHERS.iter().find(|(_, names)| names.contains(&&plain[..])) {
        // `/word/king`: the word stays.
        let is_word = *route == "/words" && index(&format!("{route}{others}")) < ROUTES.len();
        return Some(if is_word { format!("{route}{others}") } else { (*route).to_owned() });
    }
    if plain == "words" && others.matches('/').count() > 1 {
        return Some("/words?word=WORD".to_owned());
    }
    if plain.len() < SHORTEST {
        return None;
    }
    let whole = ROUTES.iter().filter(|route| !route.path[1..].contains(['/', '{']));
    let names = whole.map(|route| &route.path[1..]).filter(|name| !name.is_empty());
    likest(&plain, names).map(|name| format!("/{name}")).or_else(|| misspelt(&plain))
}

/// The route that others call nearly so.
fn misspelt(plain: &str) -> Option<String> {
    let names = OTHERS.iter().flat_map(|(_, names)| names.iter().copied());
    let name = likest(plain, names).filter(|name| strsim::jaro(plain, name) > ALIKE)?;
    let (route, _) = OTHERS.iter().find(|(_, names)| names.contains(&name))?;
    Some((*route).to_owned())
}

/// A part of a path as those of [`OTHERS`] are written.
fn plain(part: &str) -> String {
    part.to_lowercase().replace('_', "-")
}

/// The path of these parts.
fn joined(parts: &[&str]) -> String {
    parts.iter().map(|part| format!("/{part}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_others_and_misspelt_ones_are_understood() {
        for (path, expected) in [
            ("/neighbors", "/nearest"),
            ("/neighbours", "/nearest"),
            ("/most_similar", "/nearest"),
            ("/search", "/nearest"),
            ("/api/v1/search", "/nearest"),
            ("/v1/nearest", "/nearest"),
            ("/nearest/", "/nearest"),
            ("/NEAREST", "/nearest"),
            ("/Nearest/", "/nearest"),
            ("//nearest", "/nearest"),
            ("/nearest/frog", "/nearest"),
            ("/nearst", "/nearest"),
            ("/neigbors", "/nearest"),
            ("/synonims", "/nearest"),
            ("/helthcheck", "/health/live or /health/ready"),
            ("/demo/nearest", "/nearest or /models/demo/nearest"),
            ("/kindred/words/King", "/words/King or /models/kindred/words/King"),
            ("/kindred/models/en/nearest", "/models/en/nearest"),
            ("/kindred/metrics", "/metrics"),
            ("/model/demo/nearest", "/models/demo/nearest"),
            ("/Models/demo/nearest", "/models/demo/nearest"),
            ("nearest", "/nearest"),
            ("/odd_one_out", "/odd-one-out"),
            ("/healthz", "/health/live"),
            ("/health", "/health/live or /health/ready"),
            ("/health/", "/health/live or /health/ready"),
            ("/health%2Flive", "/health/live"),
            ("/Health/Live/", "/health/live"),
            ("/readyz", "/health/ready"),
            ("/openapi.json", "/openapi.yaml"),
            ("/swagger.json", "/openapi.yaml"),
            ("/metrics/", "/metrics"),
            ("/Words/King", "/words/King"),
            ("/word/King", "/words/King"),
            ("/words/", "/words"),
            ("/words/and/or", "/words?word=WORD"),
            ("/words/and%2For/x", "/words?word=WORD"),
            ("/models/en/words/and/or", "/models/en/words?word=WORD"),
            ("/embedding", "/embed"),
            ("/index.html", "/"),
            ("/version/", "/version"),
            ("/models/en/neighbors", "/models/en/nearest"),
            ("/models/en/NEAREST/", "/models/en/nearest"),
            ("/models/en/metrics", "/metrics"),
            ("/models/en/healthz", "/health/live"),
        ] {
            assert_eq!(meant(path).as_deref(), Some(expected), "{path}");
        }
        for path in ["/x", "*", "", "/%00", "/../..", "/docs/none", &"/nearest".repeat(100)] {
            assert_eq!(meant(path), None, "{path}");
        }
    }

    #[test]
    fn what_is_meant_is_a_route() {
        for (routes, names) in OTHERS {
            for route in routes.split(" or ") {
                let path = route.split('?').next().unwrap();
                assert!(index(path) < ROUTES.len(), "{route}");
            }
            for name in *names {
                assert_eq!(index(&format!("/{name}")), ROUTES.len(), "{name} is a route");
                assert_eq!(*name, name.to_lowercase().replace('_', "-"));
            }
        }
    }
}
