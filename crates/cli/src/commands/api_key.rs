//! `kindred api-key`: makes an API key.

use super::CommandError;
use crate::arguments::ApiKeyArguments;
use server::http::edge::keys;

/// Makes an API key. Prints it once, with its line for the keys file.
///
/// # Errors
/// If the name is invalid, the system has no randomness, or the key can't be printed, in which case
/// it is lost.
pub fn api_key(arguments: &ApiKeyArguments) -> Result<(), CommandError> {
    let (key, line) = keys::make(&arguments.name, arguments.admin).map_err(CommandError::Usage)?;
    say!(
        "Key for the client (it is not shown again):\n{key}\n\nLine for the file that api_keys_file \
         names:\n{line}"
    )
}
