//! `kindred api-key`: makes an API key.

use super::CommandError;
use server::http::edge::keys::{self, Rights};

/// Makes an API key. Prints it once, with its line for the keys file.
pub(super) fn api_key(name: &str, rights: Rights) -> Result<(), CommandError> {
    let (key, line) = keys::make(name, rights).map_err(CommandError::Usage)?;
    say!(
        "Key for the client (it is not shown again):\n{key}\n\nLine for the file that api_keys_file \
         names:\n{line}"
    )
}
