//! The heads of a model. A request to a head, of whatever kind, is read, asked and answered here; a
//! kind says in [`Asked`] which texts it reads, what it asks of the engine, and what it writes. A
//! GET has one text, and its answer has an entity tag.

pub(super) mod classify;
pub(super) mod expand;

use std::borrow::Cow;
use std::time::Instant;

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use kindred::heads::{AnyHead, HeadKind, Tokenised, Vocabulary};
use kindred::queue;
use serde::Serialize;

use super::search::{Timed, answered_in_time, encoding};
use super::suggestions;
use crate::http::ApiError;
use crate::http::offload::{Cost, check_deadline, stage};
use crate::http::parse::body::Received;
use crate::http::parse::limits::MAX_TOKENS;
use crate::http::parse::negotiation;
use crate::http::parse::texts::{TextOrWords, TextsRequest};
use crate::http::render::server_timing::Timing;
use crate::http::render::size::Size;
use crate::http::render::{self, ItemAnswer, caching};
use crate::models::{Call, Pinned, ServedHead, ServedModel, find_head};
use crate::workers::Cancellation;
use scheduler::account::Reservation;

/// The deadline of a request, and what is in its body.
type Read<T, O> = Result<(Instant, TextsRequest<T, O>), ApiError>;

/// What a request asks of a head of one kind.
pub(super) trait Asked: Sized + Send + Sync + 'static {
    /// The kind of head.
    const KIND: HeadKind;
    /// A text of the body that is not parsed yet.
    type Unread<'a>;
    /// Everything in the body but its texts and the name of its head.
    type Options;
    /// A text as the engine is asked for it.
    type Request: Send + 'static;
    /// What the engine finds for a text.
    type Found: Send + 'static;
    /// The answer to a text.
    type Answer<'a>: Serialize
    where
        Self: 'a;

    /// Counts the memory that the body takes once it is read, where that is more than a body takes
    /// anyway.
    fn count_memory(_call: &Call, _received: &mut Received) -> Result<(), ApiError> {
        Ok(())
    }

    /// Parses the body, but not its texts. Returns the deadline of the request as well.
    fn read<'a>(call: &Call, received: &'a Received) -> Read<Self::Unread<'a>, Self::Options>;

    /// What is asked of this head, which is of the right kind and one of those of a served model.
    fn new(
        call: &Call,
        head: AnyHead,
        options: Self::Options,
        cancellation: &Cancellation,
    ) -> Result<Self, ApiError>;

    /// Parses the text with this index, `None` if it is the only one, and looks up its words.
    fn know(
        &self,
        served: &ServedModel,
        index: Option<usize>,
        text: Self::Unread<'_>,
    ) -> Result<(KnownText, Self::Request), ApiError>;

    /// Asks for texts until the deadline: the engine, or who else knows the answer.
    fn ask(
        &self,
        call: &Call,
        texts: Vec<Self::Request>,
        deadline: Instant,
    ) -> impl Future<Output = Result<queue::Answered<Self::Found>, ApiError>> + Send;

    /// Counts texts that were answered.
    fn count(_call: &Call, _texts: usize) {}

    /// About how large the answer to a text is, and how long writing it takes beyond its size.
    fn size(&self, known: &KnownText, found: &Self::Found) -> (Size, Cost);

    /// The answer to a text.
    fn answer<'a>(
        &'a self,
        served: &'a ServedModel,
        known: &'a KnownText,
        found: &'a Self::Found,
    ) -> Result<Self::Answer<'a>, ApiError>;
}

/// A request to a head whose texts have been looked up.
struct Planned<A: Asked> {
    asked: A,
    head: ServedHead,
    known: Vec<Result<(KnownText, A::Request), ApiError>>,
    is_single: bool,
    deadline: Instant,
    /// The entity tag of the answer, if it has one.
    tag: Option<String>,
    /// The answer to a client that has it already.
    not_modified: Option<Response>,
    /// The memory that was counted for the request.
    room: Option<Reservation>,
}

/// Answers a GET to a head.
pub(super) async fn get<A: Asked>(call: Call, headers: HeaderMap, uri: Uri) -> Timed {
    let received = Received::of_get(&call, headers, uri);
    answer::<A>(call, received).await
}

/// Answers a request to a head.
pub(super) async fn answer<A: Asked>(call: Call, received: Received) -> Timed {
    let (cost, latest, same) = (received.cost(), received.latest(&call), call.clone());
    let plan = move |cancellation: &Cancellation| {
        let mut received = received.whole()?;
        A::count_memory(&same, &mut received)?;
        let (deadline, TextsRequest { texts, is_single, head, options }) =
            A::read(&same, &received)?;
        same.log_queries(texts.len());
        let head = find(&same, head.as_deref(), A::KIND)?;
        same.log_head(&head.name);
        let cancellation = cancellation.at_most(deadline);
        let asked = A::new(&same, head.head.clone(), options, &cancellation)?;
        let mut known = Vec::with_capacity(texts.len());
        for (index, text) in texts.into_iter().enumerate() {
            check_deadline(&cancellation)?;
            known.push(asked.know(&same, (!is_single).then_some(index), text));
        }
        negotiation::check(&received.headers, &negotiation::JSON)?;
        if is_single {
            known = vec![Ok(known.pop().expect("one text")?)];
        }
        let tag = received.is_get.then(|| caching::tag_of_head(same.pinned(), &head));
        let not_modified =
            tag.as_ref().and_then(|tag| caching::not_modified_by(&received.headers, tag));
        let room = received.into_room();
        Ok(Planned { asked, head, known, is_single, deadline, tag, not_modified, room })
    };
    let planned = stage(&call, cost, latest, plan).await;
    let Planned { asked, head, mut known, is_single, deadline, tag, not_modified, room: _room } =
        suggestions::with(&call, planned).await?;
    if let Some(not_modified) = not_modified {
        return Ok((not_modified, Timing::default()));
    }
    let faults = known.iter_mut().filter_map(|one| one.as_mut().err());
    suggestions::fill_in(&call, faults).await;
    call.text_counts.add(known.iter().flatten().map(|(text, _)| &text.tokenised));
    let mut requests = Vec::with_capacity(known.len());
    let mut take = |(text, request)| {
        requests.push(request);
        text
    };
    let known: Vec<Result<KnownText, ApiError>> =
        known.into_iter().map(|one| one.map(&mut take)).collect();
    let number = requests.len();
    head.set_in_use();
    let queue::Answered { responses, queued, device } =
        asked.ask(&call, requests, deadline).await?;
    A::count(&call, number);
    let timing = encoding(queued, device);
    let mut found = responses.into_iter();
    let mut found = || found.next().expect("the engine answers every text");
    let texts =
        known.into_iter().map(|one| Ok((one?, found()))).collect::<Vec<Result<_, ApiError>>>();
    let (mut size, mut besides) = (Size::default(), 0);
    for text in &texts {
        let (of_text, Cost(more)) = match text {
            Ok((known, found)) => asked.size(known, found),
            Err(error) => (Size::of_error(error), Cost(0)),
        };
        (size, besides) = (size + of_text, besides + more);
    }
    let cost = Cost(size.cost().0 + besides);
    let (room, same) = (size.room(&call)?, call.clone());
    let write = move |cancellation: &Cancellation| {
        let of_head = (same.pinned(), &head.name[..]);
        let whole = HeadAnswer::new(of_head, &texts, is_single, cancellation, |(known, found)| {
            asked.answer(&same, known, found)
        })?;
        Ok(render::json(&whole, room))
    };
    let mut response = stage(&call, cost, deadline, write).await?;
    if let Some(tag) = tag {
        caching::insert(&mut response, &tag);
    }
    Ok((response, timing))
}

/// The head of this name and kind, or the only one of this kind.
fn find(served: &ServedModel, name: Option<&str>, kind: HeadKind) -> Result<ServedHead, ApiError> {
    let found = find_head(&served.heads.load(), served.name(), name, kind).cloned();
    found.map_err(|reason| ApiError::NoSuchHead { reason })
}

/// A text whose words were looked up. It is empty if its vectors came with the request.
#[derive(Default)]
pub(super) struct KnownText {
    tokenised: Tokenised,
    /// The text, for an explanation; otherwise empty.
    text: String,
}

/// Looks up the words of a text. It is kept only if `explain` says so.
fn look_up(
    vocabulary: &Vocabulary<'_>,
    text: TextOrWords<MAX_TOKENS>,
    explain: bool,
) -> Result<KnownText, ApiError> {
    let tokenised = match &text {
        TextOrWords::Text(text) => vocabulary.tokenise(text),
        TextOrWords::Words(words) => vocabulary.take(words.iter().map(String::as_str)),
    };
    if !tokenised.has_answer() {
        return Err(kindred::Error::no_known_word(tokenised.unknown).into());
    }
    let text = match text {
        _ if !explain => String::new(),
        TextOrWords::Text(text) => text,
        TextOrWords::Words(words) => words.join(" "),
    };
    Ok(KnownText { tokenised, text })
}

/// The answer to a request with texts.
#[derive(Serialize)]
struct HeadAnswer<'a, T> {
    model: &'a str,
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    head: &'a str,
    #[serde(flatten)]
    one: Option<ItemAnswer<'a, T>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Vec<ItemAnswer<'a, T>>>,
}

impl<'a, T> HeadAnswer<'a, T> {
    /// The answers that `found` gives to texts, and the errors of the others. The error of a single
    /// text is that of the request.
    fn new<K>(
        (asked, head): (Pinned<'a>, &'a str),
        texts: &'a [Result<K, ApiError>],
        is_single: bool,
        cancellation: &Cancellation,
        mut found: impl FnMut(&'a K) -> Result<T, ApiError>,
    ) -> Result<Self, ApiError> {
        let mut results = Vec::with_capacity(texts.len());
        for text in texts {
            check_deadline(cancellation)?;
            results.push(match text.as_ref().map(&mut found) {
                Ok(Ok(answer)) => ItemAnswer::Found(answer),
                Ok(Err(error)) if is_single => return Err(error),
                Ok(Err(error)) => ItemAnswer::Failed { error: Cow::Owned(error) },
                Err(error) => ItemAnswer::Failed { error: Cow::Borrowed(error) },
            });
        }
        Ok(Self {
            model: asked.rows().base().name(),
            version: asked.rows().version(),
            position: asked.position(),
            head,
            one: if is_single { results.pop() } else { None },
            results: (!is_single).then_some(results),
        })
    }
}
