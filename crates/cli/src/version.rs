//! The build of the program: its version, commit and features.

use std::sync::LazyLock;

use server::models::BuildInfo;

/// The commit, from the build script, and the Cargo features.
pub(crate) const BUILD: BuildInfo = BuildInfo {
    commit: env!("BUILD_COMMIT"),
    features: &[
        #[cfg(feature = "cuda")]
        "cuda",
        #[cfg(feature = "parquet")]
        "parquet",
        #[cfg(feature = "traces")]
        "traces",
    ],
};

/// The text of `kindred --version`, behind the name.
pub(crate) fn long() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(|| {
        let features = match BUILD.features {
            [] => "none".to_owned(),
            some => some.join(", "),
        };
        let version = env!("CARGO_PKG_VERSION");
        format!("{version} (commit {}; features: {features})", BUILD.commit)
    });
    &LONG
}
