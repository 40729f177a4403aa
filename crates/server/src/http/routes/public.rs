//! Checks the setting `public_routes`: an entry that covers no route would make nothing public.

use super::table::ROUTES;
use crate::http::edge::EdgeError;

/// Checks that each entry is the path of a route, or has routes below it.
///
/// # Errors
/// For the first that does not.
pub(crate) fn check_public_routes(public: &[String]) -> Result<(), EdgeError> {
    match public.iter().find(|entry| entry.starts_with('/') && !covers_a_route(entry)) {
        None => Ok(()),
        Some(wrong) => Err(EdgeError::Setting {
            key: "public_routes",
            value: wrong.clone(),
            reason: "the service has no such route, and none below it; GET / lists the routes, and \
                     openapi.yaml has all of them",
        }),
    }
}

fn covers_a_route(entry: &str) -> bool {
    let paths = ROUTES.iter().flat_map(|route| {
        let of_a_model = route.is_of_a_model.then(|| format!("/models/{{name}}{}", route.path));
        [Some(route.path.to_owned()), of_a_model].into_iter().flatten()
    });
    let mut paths = paths.chain(["/models/{name}".to_owned()]);
    let (folder, is_folder) = match entry.strip_suffix("/*") {
        Some(folder) => (folder, true),
        None => (entry, false),
    };
    paths.any(|path| {
        let (mut path, mut wanted) = (path.split('/'), folder.split('/'));
        let mut matches = wanted.by_ref().all(|one| {
            path.next()
                .is_some_and(|part| part == one || (part.starts_with('{') && !one.is_empty()))
        });
        matches &= path.next().is_some() == is_folder;
        matches
    })
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
