//! The whole service in this process, over a tiny model and the plain engine, without a socket.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use contract::classifier::{Classifier, Convolution, Layer};
use cpu_core::ReferenceEngine;
use kindred::heads::{
    Cut, Description, HeadKind, MadeFor, Probabilities, Tokeniser, Tokens, plain_expander,
    write_expander,
};
use model_store::ModelStore;
use model_store::head::{HEAD_VERSION, Parts};
use server::assembly::Assembly;
use server::config::{Config, ModelSource};
use server::http::Front;
use server::models::{BuildInfo, one_engine};
use tokio::runtime::{Builder, Runtime};
use tower::Service;

/// Words that inputs are likely to hit upon.
const WORDS: [(&str, [f32; 2]); 8] = [
    ("a", [1.0, 0.0]),
    ("b", [0.0, 1.0]),
    ("c", [1.0, 1.0]),
    ("A", [2.0, 0.0]),
    ("-", [-1.0, 0.5]),
    ("\"", [0.5, -3.0]),
    ("é", [1.0, -1.0]),
    ("0", [0.0, 0.0]),
];

/// Who asks.
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

struct InProcess {
    runtime: Runtime,
    front: Front,
}

thread_local! {
    static SERVICE: InProcess = InProcess::start();
}

impl InProcess {
    fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let folder = tempfile::tempdir().expect("a folder").keep().join("tiny");
        let lines = WORDS.map(|(word, [x, y])| format!("{word} {x} {y}\n")).concat();
        let text = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(text.path(), lines).expect("the vectors are written");
        let input = model_store::prepare::Input::File(text.path());
        let options = model_store::prepare::PrepareOptions::default();
        let go_on = &mut |_| std::ops::ControlFlow::Continue(());
        model_store::prepare::prepare_folder(input, &folder, &options, go_on).expect("a model");
        let heads = heads(&folder);
        const TIMEOUT_MS: u64 = 10_000;
        let config = Config {
            model: vec![ModelSource::folder(folder)],
            head: heads,
            request_timeout_ms: TIMEOUT_MS,
            body_read_timeout_ms: TIMEOUT_MS,
            body_memory_mb: 64,
            answer_memory_mb: 64,
            ..Config::defaults()
        };
        let same = config.clone();
        let assembly = Assembly::build(
            &config,
            Box::new(move || Ok(same.clone())),
            one_engine(|model, _| Ok(Box::new(ReferenceEngine::new(model)))),
            runtime.handle().clone(),
            BuildInfo::UNKNOWN,
        );
        let front = assembly.expect("it loads").front;
        Self { runtime, front }
    }
}

/// A classifier and an expander for the model of a folder, in folders beside it.
fn heads(folder: &Path) -> Vec<ModelSource> {
    let model = Arc::new(ModelStore::open(folder).expect("a model"));
    let [classifier, expander] = ["labels", "terms"].map(|name| folder.with_file_name(name));
    let tokens = Tokens { tokeniser: Tokeniser::Ptb, lower_case: false, limit: 4, cut: Cut::End };
    let (description, weights) = plain_expander(&model, tokens.clone(), -0.5, &["b"]);
    write_expander(&expander, false, &description, &weights, &model).expect("an expander");
    let convolution =
        Convolution { width: 2, padding: 1, weights: vec![1.0, -1.0, 0.5, 2.0], bias: vec![0.25] };
    let layer = Layer { weights: vec![1.0, -0.5], bias: vec![0.0, 1.0] };
    let description = Description {
        kind: HeadKind::Classifier,
        version: HEAD_VERSION,
        model: MadeFor::of(&model),
        tokens,
        labels: ["a", "b"].map(str::to_owned).into(),
        probabilities: Probabilities::Softmax,
        temperature: 1.0,
        convolutions: Vec::new(),
        layers: Vec::new(),
        words: Vec::new(),
        other_words: 1.0,
        weights: String::new(),
        training: serde_json::Map::new(),
        checksum: None,
    };
    let parts = Parts {
        description,
        classifier: Classifier::new(model.dim(), vec![convolution], vec![layer]).expect("it fits"),
        tuned: Default::default(),
        added: Vec::new(),
        unknown: None,
    };
    parts.write(&classifier, false).expect("a classifier");
    [classifier, expander].map(ModelSource::folder).into()
}

/// The status and body of the answer to a request.
pub fn ask(method: &str, target: &str, body: &[u8]) -> (u16, Vec<u8>) {
    let (status, _, body) = ask_with(method, target, &[], body);
    (status, body)
}

/// The status, media type and body of the answer to a request with these headers.
pub fn ask_with(
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> (u16, String, Vec<u8>) {
    SERVICE.with(|service| {
        let mut request = Request::builder().method(method).uri(target).header("host", "fuzz");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_vec())).expect("a request");
        service.runtime.block_on(async {
            let response =
                service.front.service(CLIENT).call(request).await.expect("it never fails");
            let status = response.status().as_u16();
            let media =
                response.headers().get("content-type").and_then(|media| media.to_str().ok());
            let media = media.unwrap_or_default().to_owned();
            let body = to_bytes(response.into_body(), usize::MAX).await.expect("it is in memory");
            (status, media, body.into())
        })
    })
}

/// That an answer is JSON, with one of these statuses.
pub fn check(status: u16, answer: &[u8], allowed: &[u16]) {
    let said = String::from_utf8_lossy(answer);
    assert!(allowed.contains(&status), "{status}: {said}");
    let json: serde_json::Value = serde_json::from_slice(answer).expect("answers are JSON");
    let code = json.get("code").is_some();
    assert_eq!(code, status != 200, "problems, and nothing else, have a code: {said}");
}

/// That an answer is one array of neighbours, whose vectors have this many components.
pub fn check_array(status: u16, answer: &[u8], components: usize) {
    assert_eq!(status, 200, "problems are JSON");
    assert_eq!(answer[..8], *b"\x93NUMPY\x01\x00");
    let length = usize::from(u16::from_le_bytes([answer[8], answer[9]]));
    let (head, cells) = answer[10..].split_at(length);
    let head = std::str::from_utf8(head).expect("the header is text");
    assert!(head.starts_with("{'descr': [('row', '<i8'), ('score', '<f8')"), "{head}");
    assert!((10 + length) % 64 == 0 && cells.len() % (16 + 4 * components) == 0, "{head}");
    for cell in cells.chunks(16 + 4 * components) {
        let row = i64::from_le_bytes(cell[..8].try_into().expect("eight bytes"));
        let score = f64::from_le_bytes(cell[8..16].try_into().expect("eight bytes"));
        let is_filled_up = row == -1 && score.is_nan();
        assert!(is_filled_up || (0..WORDS.len() as i64).contains(&row) && score.abs() <= 1.0);
    }
}
