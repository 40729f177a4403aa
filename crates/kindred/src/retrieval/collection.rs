//! Documents, queries and judgements together: what can be measured.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::judgements::Judgement;
use super::texts::{QueryIds, Text};
use crate::evaluation::EvaluationError;
use crate::evaluation::source::Source;

/// A collection with judged queries.
#[derive(Debug, Clone)]
pub struct Collection {
    /// All documents.
    pub documents: Vec<Text>,
    /// The queries that have a relevant document.
    pub queries: Vec<JudgedQuery>,
    /// How large it is.
    pub counts: Counts,
}

/// A query, and the documents that answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedQuery {
    /// Its id.
    pub id: String,
    /// Its words.
    pub text: String,
    /// Its relevant documents, at least one.
    pub relevant: Vec<Relevant>,
}

/// A document that is relevant to a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relevant {
    /// Its index; `None` if the collection does not have it, so that it can't be found.
    pub document: Option<u32>,
    /// How relevant it is, above 0.
    pub grade: u32,
}

/// How large a collection is, and what was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Documents.
    pub documents: usize,
    /// Documents without a word that is indexed.
    pub empty_documents: usize,
    /// Queries, all of them.
    pub queries: usize,
    /// Queries that have judgements.
    pub judged_queries: usize,
    /// Queries that are judged but have no relevant document. They are left out.
    pub without_relevant: usize,
    /// Judged queries that are not in the file of queries. They are left out.
    pub unknown_queries: usize,
    /// Judgements above 0 of queries that are measured.
    pub relevant: usize,
    /// Those of them whose document the collection does not have. They count as not found.
    pub unknown_documents: usize,
}

impl Collection {
    /// Joins them. Without `ids`, the queries' ids in the file are taken, unless the judgements look as if they number the
    /// queries by position: that is an error.
    ///
    /// # Errors
    /// If the judgements fit neither queries nor documents; says what to do.
    pub fn new(
        documents: Vec<Text>,
        queries: Vec<Text>,
        judged: (&Source, Vec<Judgement>),
        ids: Option<QueryIds>,
    ) -> Result<Self, EvaluationError> {
        let (source, judgements) = judged;
        check_ids(source, &queries, &judgements, ids)?;
        let index: HashMap<&str, u32> =
            (0..).zip(&documents).map(|(index, document)| (&document.id[..], index)).collect();
        let known: HashSet<&str> = queries.iter().map(|query| &query.id[..]).collect();
        let mut by_query = HashMap::<&str, Vec<Relevant>>::new();
        for Judgement { query, document, relevance } in &judgements {
            let relevant = by_query.entry(query).or_default();
            if let Ok(grade @ 1..) = u32::try_from(*relevance) {
                let document = index.get(&document[..]).copied();
                relevant.push(Relevant { document, grade });
            }
        }
        let unknown_queries = by_query.keys().filter(|query| !known.contains(*query)).count();
        let judged_queries = by_query.len() - unknown_queries;
        let (all, mut kept) = (queries.len(), Vec::new());
        for Text { id, text, .. } in queries {
            if let Some(relevant) = by_query.remove(&id[..]).filter(|all| !all.is_empty()) {
                kept.push(JudgedQuery { id, text, relevant });
            }
        }
        let relevant = || kept.iter().flat_map(|query: &JudgedQuery| &query.relevant);
        let counts = Counts {
            documents: documents.len(),
            empty_documents: 0,
            queries: all,
            judged_queries,
            without_relevant: judged_queries - kept.len(),
            unknown_queries,
            relevant: relevant().count(),
            unknown_documents: relevant().filter(|one| one.document.is_none()).count(),
        };
        if counts.relevant == counts.unknown_documents {
            let what = "no relevant document is among the documents; the judgements belong to another collection, or \
                 name documents by other ids";
            return Err(source.empty(what));
        }
        Ok(Self { documents, queries: kept, counts })
    }
}

/// Some collections, such as Cranfield, number the queries by position in their judgements, and otherwise in the queries. Part
/// of the ids is then found all the same, but names other queries.
fn check_ids(
    source: &Source,
    queries: &[Text],
    judgements: &[Judgement],
    ids: Option<QueryIds>,
) -> Result<(), EvaluationError> {
    let known: HashSet<&str> = queries.iter().map(|query| &query.id[..]).collect();
    let judged: HashSet<&str> = judgements.iter().map(|one| &one.query[..]).collect();
    let found = judged.iter().filter(|id| known.contains(*id)).count();
    let is_position =
        |id: &&str| id.parse().is_ok_and(|at: usize| (1..=queries.len()).contains(&at));
    let by_position = judged.iter().all(is_position);
    let counts = format!("{found} of {} judged queries are among the queries", judged.len());
    let what = match ids {
        None if found < judged.len() && by_position => format!(
            "only {counts}, and all judged ids are between 1 and {}: they may be the queries' positions in their \
             file; choose --query-ids position, or --query-ids file if they are not",
            queries.len()
        ),
        _ if found == 0 && by_position && ids == Some(QueryIds::File) => {
            format!("{counts}; choose --query-ids position if they are numbered by position")
        }
        _ if found == 0 => format!("{counts}; give the judgements of these queries"),
        _ => return Ok(()),
    };
    Err(source.empty(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ids: &[&str]) -> Vec<Text> {
        let text = |id: &&str| Text { id: (*id).into(), text: format!("text {id}"), line: 1 };
        ids.iter().map(text).collect()
    }

    fn collection(
        queries: &[&str],
        judged: &[(&str, &str, i64)],
        ids: Option<QueryIds>,
    ) -> Result<Collection, String> {
        let source = Source { file: "qrels".into(), name: "qrels".into(), text: String::new() };
        let judged = judged.iter().map(|&(query, document, relevance)| Judgement {
            query: query.into(),
            document: document.into(),
            relevance,
        });
        Collection::new(texts(&["a", "b"]), texts(queries), (&source, judged.collect()), ids)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn only_queries_with_a_relevant_document_are_measured() {
        let judged = [
            ("x", "b", 2),
            ("x", "a", 0),
            ("x", "none", 1),
            ("y", "a", 0),
            ("y", "b", -1),
            ("unknown", "a", 1),
        ];
        let found = collection(&["y", "x", "z"], &judged, None).unwrap();
        let relevant =
            vec![Relevant { document: Some(1), grade: 2 }, Relevant { document: None, grade: 1 }];
        assert_eq!(
            found.queries,
            [JudgedQuery { id: "x".into(), text: "text x".into(), relevant }]
        );
        let counts = Counts {
            documents: 2,
            empty_documents: 0,
            queries: 3,
            judged_queries: 2,
            without_relevant: 1,
            unknown_queries: 1,
            relevant: 2,
            unknown_documents: 1,
        };
        assert_eq!(found.counts, counts);
    }

    #[test]
    fn judgements_by_position_are_not_mistaken_for_ids() {
        let judged = [("1", "a", 1), ("2", "b", 1), ("3", "a", 1)];
        let error = collection(&["1", "2", "4"], &judged, None).unwrap_err();
        for part in ["qrels: only 2 of 3 judged queries", "between 1 and 3", "--query-ids position"]
        {
            assert!(error.contains(part), "{error}");
        }
        let found = collection(&["1", "2", "4"], &judged, Some(QueryIds::File)).unwrap();
        assert_eq!((found.queries.len(), found.counts.unknown_queries), (2, 1));
        assert_eq!(collection(&["1", "2", "3"], &judged, None).unwrap().queries.len(), 3);
        let error = collection(&["x", "y", "z"], &judged, Some(QueryIds::File)).unwrap_err();
        assert!(error.contains("0 of 3") && error.contains("--query-ids position"), "{error}");
    }

    #[test]
    fn judgements_of_other_collections_are_refused() {
        let error = collection(&["x"], &[("y", "a", 1)], None).unwrap_err();
        assert!(error.contains("0 of 1 judged queries are among the queries; give"), "{error}");
        for judged in [("x", "other", 1), ("x", "a", 0)] {
            let error = collection(&["x"], &[judged], None).unwrap_err();
            assert!(error.contains("no relevant document is among the documents"), "{error}");
        }
    }
}
