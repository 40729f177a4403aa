//! Puts changed files of API keys and certificates in force, without a signal. Their content is
//! compared, not their time or inode, so that it makes no difference how they are replaced:
//! written, renamed, or by the links of a Kubernetes volume.

use std::convert::Infallible;
use std::future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use blake3::Hash;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, info};

use server::config::Config;
use server::http::edge::Edge;

/// Checks the files every `watch_files_ms`; never, if that is 0 or there are none.
pub(super) async fn watch_files(config: &Config, edge: &Arc<Edge>) -> Infallible {
    let named = [&config.api_keys_file, &config.tls_certificate, &config.tls_private_key];
    let files: Arc<[PathBuf]> =
        named.into_iter().filter(|path| !path.as_os_str().is_empty()).cloned().collect();
    if config.watch_files_ms == 0 || files.is_empty() {
        return future::pending().await;
    }
    let mut ticks = interval(Duration::from_millis(config.watch_files_ms));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Unknown at first: a file may have changed between the start and the first tick.
    let mut before = None;
    loop {
        ticks.tick().await;
        let (files, edge, known) = (files.clone(), edge.clone(), before.clone());
        // Not on this thread, which accepts connections: the files may be on a network.
        let checked = spawn_blocking(move || {
            // Before the files are read for use: what changes in between is seen by the next check.
            let now = Some(content(&files));
            if now != known {
                reload(&edge, known.is_none());
            }
            now
        });
        before = checked.await.unwrap_or(before);
    }
}

/// Hashes of these files; `None` for one that can't be read.
fn content(files: &[PathBuf]) -> Vec<Option<Hash>> {
    files.iter().map(|file| Some(blake3::hash(&std::fs::read(file).ok()?))).collect()
}

fn reload(edge: &Edge, is_first: bool) {
    match edge.reload() {
        Ok(_) if is_first => {}
        Ok(lines) => lines.iter().for_each(|line| info!("a file changed: {line}")),
        Err(e) => error!("a file changed, but can't be used; what was in force stays: {e}"),
    }
}
