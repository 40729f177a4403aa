//! Makes the tables that an engine derives from heads while they are loaded: otherwise the first
//! request after a reload would wait for them, and those of others behind it.

use std::time::{Duration, Instant};

use kindred::contract::{Expansion, TermExpander, TokenVectors};
use kindred::heads::AnyHead;
use tracing::warn;

use super::ServedModel;
use super::heads::ServedHead;
use kindred::answering::wait_at_most;
use kindred::asking::Asking;
use scheduler::account::Account;

/// Time limit of a reload's wait for it. Requests are answered meanwhile, and later too.
const LONGEST: Duration = Duration::from_secs(60);

/// Has the engine of a model make what it derives from these heads' terms.
pub(super) fn warm(served: &ServedModel, heads: &[ServedHead]) {
    for ServedHead { name, head, .. } in heads {
        let AnyHead::Expander(expander) = head else { continue };
        // It has no terms, so nothing is searched for.
        let nothing = TokenVectors::Vectors(vec![0.0; expander.token_dim()]);
        let text = Expansion::new(expander.clone(), &served.model.table(), nothing, 0, 0.0);
        let Ok(text) = text else { continue };
        let (account, deadline) = (Account::new(), Instant::now() + LONGEST);
        let asked = Asking::new(&served.queue, &account, deadline, None).expand(vec![text]);
        match wait_at_most(LONGEST, asked) {
            Some(Ok(_)) => {}
            why => warn!(model = served.name(), head = name, "the head is not prepared: {why:?}"),
        }
    }
}

/// Those of `heads` that are served already are the served ones, of which everything is derived.
pub(super) fn reuse(served: &[ServedHead], heads: &mut [ServedHead]) {
    for one in heads {
        if let Some(same) = served.iter().find(|served| served.head.is_same(&one.head)) {
            let name = std::mem::take(&mut one.name);
            *one = same.clone();
            one.name = name;
        }
    }
}
