//! Attacks on the threads that look words up, and that write and compress answers.

use super::client::Request;
use super::flood::Flood;
use super::{misspelt, ms, others, others_are_served, serve};

#[test]
fn a_flood_of_look_ups_waits_for_itself_only() {
    let service = serve(&[]);
    let misspelt = misspelt(&service);
    let requests = misspelt.iter().flat_map(|word| {
        [format!("/words/{word}"), format!("/words?prefix={}&limit=1000", &word[..1])]
    });
    let requests = requests.map(|path| Request::get(&path)).collect();
    let flood = Flood::begin(&service, requests, 200).once_answered();
    let (replies, took) = others(&service, &format!("/words/{}", misspelt[0]), 40);
    for reply in replies {
        assert_eq!(reply.status, 404);
        let suggested = &reply.json()["unknown"][0]["suggestions"];
        assert!(suggested.as_array().is_some_and(|words| !words.is_empty()), "{}", reply.text());
    }
    assert!(took[20] < ms(30), "{took:?}");
    let counts = flood.end();
    assert!(counts.by_status.keys().all(|status| [200, 404].contains(status)), "{counts:?}");
}

#[test]
fn answers_that_are_compressed_do_not_hold_up_their_http_thread() {
    let service = serve(&["--http-threads", "1"]);
    let request = Request::get("/nearest?word=frog&k=1000&with_vectors=true");
    let request = request.with("accept-encoding", "gzip");
    let flood = Flood::begin(&service, vec![request], 16).once_answered();
    others_are_served(&service, 60, 20, 100);
    let counts = flood.end();
    assert!(counts.by_status.contains_key(&200) && !counts.is_closed, "{counts:?}");
}
