//! Scoring texts over HTTP: the folder of a scorer is written, served and asked.

use std::path::{Path, PathBuf};

use crate::support::{Service, TINY, errors, kindred, prepared};
use model_store::ModelStore;
use model_store::head::{
    Cut, HEAD_VERSION, HeadKind, MadeFor, ScorerDescription, Tokeniser, Tokens, write_scorer,
};
use serde_json::json;

/// The folder `out/valence`, of a scorer of this model that reads `limit` words.
pub(crate) fn write(out: &Path, model: &ModelStore, limit: usize) -> PathBuf {
    let tokens = Tokens { tokeniser: Tokeniser::Words, lower_case: false, limit, cut: Cut::End };
    let description = ScorerDescription {
        kind: HeadKind::Scorer,
        version: HEAD_VERSION,
        model: MadeFor::of(model),
        tokens,
        weights: String::new(),
        training: serde_json::Map::new(),
        checksum: None,
    };
    let weight: Vec<f32> = (0..model.dim()).map(|n| 0.1 + n as f32 / 3.0).collect();
    let folder = out.join("valence");
    write_scorer(&folder, false, &description, &weight, -0.7).unwrap();
    folder
}

#[test]
fn a_scorer_is_served_beside_its_model() {
    let (scratch, folder) = prepared(TINY);
    let model = ModelStore::open(&folder).unwrap();
    let head = write(scratch.path(), &model, 3);
    let [served, scorer] = [&folder, &head].map(|path| path.to_str().unwrap());
    let service = Service::start(&["--model", served, "--head", scorer, "--device", "cpu"]);
    let words: Vec<&str> = (0..3).map(|row| model.words().word(contract::Row(row))).collect();
    let score = |rows: &[u32]| {
        let mut score = 0.0;
        for n in 0..model.dim() {
            let mut sum = 0.0;
            for &row in rows {
                sum += f64::from(model.table().row(contract::Row(row))[n]);
            }
            score += sum / rows.len() as f64 * f64::from(0.1 + n as f32 / 3.0);
        }
        score + f64::from(-0.7f32)
    };
    let [a, b, c] = [words[0], words[1], words[2]];

    let answer = service.post("/score", &json!({"text": format!("{a} xyzzyq {c}")})).json();
    let expected = json!({
        "model": "tiny",
        "version": model.version(),
        "head": "valence",
        "score": score(&[0, 2]),
        "unknown": ["xyzzyq"],
    });
    assert_eq!(answer, expected);
    let texts = json!({"texts": [[b], "xyzzyq", [a, a, c, b]], "head": "valence"});
    let answer = service.post("/score", &texts).json();
    let results = answer["results"].as_array().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(results[0], json!({"score": score(&[1])}));
    assert_eq!(results[1]["error"]["code"], "unknown_word");
    assert_eq!(results[2], json!({"score": score(&[0, 0, 2]), "cut": true}));

    let heads = service.get("/heads").json()["heads"].clone();
    let listed = (heads[0]["name"].clone(), heads[0]["kind"].clone());
    assert_eq!((listed, &heads[1]), ((json!("valence"), json!("scorer")), &json!(null)));
    let metrics = service.get("/metrics");
    let answered = "kindred_pass_queries_total{model=\"tiny\",lane=\"score\"} 3\n";
    assert!(metrics.text().contains(answered), "{}", metrics.text());

    let reply = Service::start(&["--model", served]).post("/score", &json!({"text": a}));
    assert_eq!(reply.status, 404);
    assert!(reply.text().contains("has no scorer; make one as docs/formats.md says"));
    let verified = kindred(&["verify", served, "--head", scorer]).output().unwrap();
    let said = String::from_utf8_lossy(&verified.stdout);
    assert!(said.contains("a scorer, made for this model; all"), "{said}{}", errors(&verified));
}
