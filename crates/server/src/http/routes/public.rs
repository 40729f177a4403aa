//! Checks the setting `public_routes`: an entry that covers no route would make nothing public.

use super::table::{ROUTES, Route};
use super::{index, split_model_name};
use crate::config::{ConfigError, invalid};

/// Checks that each entry is the path of a route, or has routes below it.
///
/// # Errors
/// For the first that does not.
pub(crate) fn check_public_routes(public: &[String]) -> Result<(), ConfigError> {
    match public.iter().find(|entry| entry.starts_with('/') && !covers_a_route(entry)) {
        None => Ok(()),
        Some(wrong) => {
            let reason = format!(
                "`{wrong}`: the service has no such route, and none below it; GET / lists the \
                 routes, and openapi.yaml has all of them"
            );
            Err(invalid("public_routes", reason))
        }
    }
}

fn covers_a_route(entry: &str) -> bool {
    // No model has an empty name.
    if split_model_name(entry).is_some_and(|(name, _)| name.is_empty()) {
        return false;
    }
    let is_there = |route: &Route, is_named: bool| route.is_of_a_model() || !is_named;
    if let Some(folder) = entry.strip_suffix('*').filter(|folder| folder.ends_with('/')) {
        let named = split_model_name(folder).map(|(_, rest)| rest);
        let is_below = |route: &Route| route.path.starts_with(named.unwrap_or(folder));
        return ROUTES.iter().any(|route| is_there(route, named.is_some()) && is_below(route));
    }
    let is_named = split_model_name(entry).is_some();
    ROUTES.get(index(entry)).is_some_and(|route| is_there(route, is_named))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn entries_are_routes_or_have_routes_below_them() {
        check_public_routes(&Config::defaults().public_routes).unwrap();
        for entry in [
            "/",
            "/*",
            "/nearest",
            "/health/*",
            "/words/frog",
            "/words/*",
            "/docs/",
            "/models/*",
            "/models/en",
            "/models/en/nearest",
            "/models/en/*",
            "/models/en/words/*",
            "/admin/*",
        ] {
            assert!(covers_a_route(entry), "{entry}");
        }
        for entry in [
            "/healthz",
            "/health/ready/",
            "/health",
            "/helth/*",
            "/metric",
            "/nearest/*",
            "/explorer*",
            "/models/en/health/live",
            "/models/en/made-up/*",
            "/words/",
            "/models/",
            "/models//nearest",
            "/models//*",
            "//*",
            "/health/**",
        ] {
            assert!(!covers_a_route(entry), "{entry}");
            let error = check_public_routes(&["/".to_owned(), entry.to_owned()]).unwrap_err();
            let said = error.to_string();
            assert!(said.contains(&format!("`{entry}`: the service has no such route")), "{said}");
        }
    }
}
