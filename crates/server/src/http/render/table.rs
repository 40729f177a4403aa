//! Neighbours as one array in NumPy's format (.npy), with rows, exact scores and, if asked for,
//! vectors; written straight into the body.

use std::borrow::Borrow;

use axum::response::Response;
use kindred::contract::{Hit, TableRows as _};
use kindred::npy;
use kindred::question::Checked;
use scheduler::account::Reservation;

use super::caching;
use super::size::Size;
use crate::http::ApiError;
use crate::http::offload::check_deadline;
use crate::http::parse::limits::{MAX_RESULTS, MAX_VECTOR_COMPONENTS, at_most};
use crate::http::parse::negotiation::Format;
use crate::models::Pinned;
use crate::workers::Cancellation;

/// Where there is no neighbour: fewer rows pass the filters than are asked for.
const NO_ROW: i64 = -1;

/// The shape of an answer that is an array: `[queries, k]`, or `[k]` for a single query. Its
/// elements are packed: a row (int64), a score (float64) and, with vectors, `dim` components
/// (float32).
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Table {
    /// `None` for a single query.
    queries: Option<usize>,
    /// The largest `k` of the queries.
    k: usize,
    /// Components of each neighbour's vector; 0 without vectors.
    components: usize,
}

impl Table {
    /// The array that answers these queries, if they can be answered by one.
    ///
    /// # Errors
    /// If the array would be too large, or one of them asks for what an array does not have.
    pub(in crate::http) fn new<O: Borrow<Checked>>(
        mut options: impl ExactSizeIterator<Item = O> + Clone,
        is_list: bool,
        dim: usize,
    ) -> Result<Self, ApiError> {
        if options.clone().any(|options| options.borrow().explain) {
            let reason = "`explain` needs an answer in JSON: accept application/json, or leave out `explain`";
            return Err(ApiError::invalid_request(reason));
        }
        let count = options.len();
        let k = options.clone().map(|options| options.borrow().k).max().unwrap_or(0);
        let with_vectors = options.any(|options| options.borrow().included.vectors);
        let components = if with_vectors { dim } else { 0 };
        let what = "an .npy answer has the largest `k` for every query:";
        at_most(count * k, MAX_RESULTS, |found| format!("{what} {count} × {k} is {found}"))?;
        at_most(count * k * components, MAX_VECTOR_COMPONENTS, |found| {
            format!("{what} {count} × {k} × {dim} components is {found}")
        })?;
        Ok(Self { queries: is_list.then_some(count), k, components })
    }

    /// Bytes of an element.
    fn element(&self) -> usize {
        size_of::<i64>() + size_of::<f64>() + self.components * size_of::<f32>()
    }

    fn elements(&self) -> usize {
        self.queries.unwrap_or(1) * self.k
    }

    /// The estimated size of the answer, and of n hits from which it is picked.
    pub(in crate::http) fn size(&self, hits: usize) -> Size {
        let hits = hits.max(self.elements());
        Size::of_array(self.elements() * self.element(), hits * size_of::<Hit>())
    }

    fn head(&self) -> Vec<u8> {
        let vector = match self.components {
            0 => String::new(),
            dim => format!(", ('vector', '<f4', ({dim},))"),
        };
        let shape: Vec<u64> =
            self.queries.into_iter().chain([self.k]).map(|length| length as u64).collect();
        npy::head(&format!("[('row', '<i8'), ('score', '<f8'){vector}]"), &shape)
    }

    /// The answer. `found` has the hits of each query, at most `k`, best first.
    pub(in crate::http) fn write<'a>(
        &self,
        asked: Pinned<'_>,
        found: impl Iterator<Item = &'a [Hit]>,
        room: Option<Reservation>,
        cancellation: &Cancellation,
    ) -> Result<Response, ApiError> {
        let mut body = self.head();
        body.reserve_exact(self.elements() * self.element());
        for hits in found {
            check_deadline(cancellation)?;
            self.write_hits(&mut body, asked, hits);
        }
        Ok(caching::tagged(asked, Format::Npy, body, room))
    }

    fn write_hits(&self, body: &mut Vec<u8>, asked: Pinned<'_>, hits: &[Hit]) {
        let rows = asked.rows();
        let table = rows.table();
        for hit in hits {
            body.extend_from_slice(&i64::from(rows.number(hit.row)).to_le_bytes());
            body.extend_from_slice(&hit.score.to_le_bytes());
            if self.components > 0 {
                write_floats(body, table.row(hit.row));
            }
        }
        for _ in hits.len()..self.k {
            body.extend_from_slice(&NO_ROW.to_le_bytes());
            body.extend_from_slice(&f64::NAN.to_le_bytes());
            let nothing = f32::NAN.to_le_bytes();
            body.extend(std::iter::repeat_n(nothing, self.components).flatten());
        }
    }
}

/// A word's vector as an array, `[dim]`.
pub(in crate::http) fn vector(
    asked: Pinned<'_>,
    components: &[f32],
    room: Option<Reservation>,
) -> Response {
    let mut body = npy::head("'<f4'", &[components.len() as u64]);
    write_floats(&mut body, components);
    caching::tagged(asked, Format::Npy, body, room)
}

/// Vectors as an array, `[vectors, dim]`.
pub(in crate::http) fn vectors<'a>(
    asked: Pinned<'_>,
    (count, dim): (usize, usize),
    vectors: impl Iterator<Item = &'a [f32]>,
    room: Option<Reservation>,
) -> Response {
    let mut body = npy::head("'<f4'", &[count as u64, dim as u64]);
    body.reserve_exact(count * dim * size_of::<f32>());
    vectors.for_each(|vector| write_floats(&mut body, vector));
    caching::tagged(asked, Format::Npy, body, room)
}

fn write_floats(body: &mut Vec<u8>, components: &[f32]) {
    let start = body.len();
    body.resize(start + size_of_val(components), 0);
    let slots = body[start..].chunks_exact_mut(size_of::<f32>());
    for (slot, component) in slots.zip(components) {
        slot.copy_from_slice(&component.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use kindred::ModelStore;
    use kindred::Options;
    use kindred::contract::Row;
    use kindred::filters::FilterSets;

    use super::*;

    #[tokio::test]
    async fn fewer_neighbours_are_filled_up_and_the_size_is_as_announced() {
        let rows = [("a", &[1.5f32, -0.5][..]), ("b", &[2.0, 4.0])];
        let served = crate::models::for_tests(ModelStore::from_rows("m", 2, rows).unwrap());
        let score = 0.1 + 0.2;
        let found = [vec![Hit { row: Row(1), score }], vec![]];
        for with_vectors in [false, true] {
            let options = Options::new().k(2).with_vectors(with_vectors);
            let checked = Checked::new(&served.model, &served.sets, options, None).unwrap();
            let table = Table::new([&checked, &checked].into_iter(), true, 2).unwrap();
            let cancellation = Cancellation::until(Instant::now() + Duration::from_secs(60));
            let hits = found.iter().map(|hits| &hits[..]);
            let response = table.write(served.pinned(), hits, None, &cancellation).unwrap();
            assert_eq!(response.headers()["content-type"], "application/x-npy");
            let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
            let head = table.head();
            assert!(body.starts_with(&head));
            let mut expected = Vec::new();
            for (row, score, vector) in [
                (1, score, [2.0f32, 4.0]),
                (-1, f64::NAN, [f32::NAN; 2]),
                (-1, f64::NAN, [f32::NAN; 2]),
                (-1, f64::NAN, [f32::NAN; 2]),
            ] {
                expected.extend(i64::to_le_bytes(row));
                expected.extend(f64::to_le_bytes(score));
                let vector = vector.into_iter().filter(|_| with_vectors);
                expected.extend(vector.flat_map(f32::to_le_bytes));
            }
            assert_eq!(body[head.len()..], expected);
            assert!(table.size(0).bytes >= body.len() - head.len());
            assert!(table.size(1000).bytes >= 1000 * size_of::<Hit>());
        }
    }

    #[test]
    fn an_array_that_would_be_too_large_is_refused_before_it_is_made() {
        let rows = [("a", &[1.5f32, -0.5][..])];
        let model = ModelStore::from_rows("m", 2, rows).unwrap().into();
        let sets = FilterSets::for_model(&model);
        let checked = |k, vectors| {
            let options = Options::new().k(k).with_vectors(vectors);
            Checked::new(&model, &sets, options, None).unwrap()
        };
        let table = |options: &[Checked], dim| Table::new(options.iter(), true, dim).map(|_| ());
        let of = |count: usize, k: u64, vectors| vec![checked(k, vectors); count];
        assert_eq!(table(&of(1024, 64, false), 300), Ok(()));
        assert!(table(&of(1024, 65, false), 300).is_err());
        // The largest k is that of all.
        let mut uneven = of(1023, 1, false);
        uneven.push(checked(1000, false));
        assert!(table(&uneven, 300).is_err());
        assert!(
            table(&of(100, 100, true), 400).is_ok() && table(&of(100, 100, true), 401).is_err()
        );
    }
}
