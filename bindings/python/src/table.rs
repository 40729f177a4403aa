//! A table whose rows change, as `kindred.Table` uses it.

use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use contract::{Metric, RowSet, TableRows as _};
use kindred::filters::FilterSets;
use kindred::live::Live;
use kindred::live::changes::{
    self, Access, BadRow, BatchBuilder, ChangeOptions, Durability, Schema,
};
use kindred::question::meeting;
use kindred::rows::{AtPosition, Rows as _, write_row};
use numpy::{PyArray1, PyArray2, PyArrayMethods as _, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::arguments::How;
use crate::model::Model;
use crate::prepare::{metric, types};
use crate::process::Process;
use crate::waiting::Signals;
use crate::{arrays, errors};

/// A table that this process reads, or changes.
#[pyclass(frozen, module = "kindred._kindred")]
pub(crate) struct Table {
    /// Over the base of the last fold. Never dropped in a fork: what it has locked is its parent's.
    live: ManuallyDrop<RwLock<Arc<Live>>>,
    /// Held alone from where a filter is met to where its rows are deleted, so that no other change
    /// comes between.
    changing: RwLock<()>,
    process: Process,
}

impl Drop for Table {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if self.process == Process::current() {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.live) };
        }
    }
}

/// The effect of a change: version and position, the rows inserted, replaced and deleted, the keys that
/// were not there, whether it is on disk, whether it was done before, and the rows that were left
/// out.
type Changed =
    ((String, u64), (usize, usize, usize, usize), (bool, bool), Vec<(usize, String, String)>);

/// Rows as lines of JSON; if they are wanted, their vectors `[rows, dim]` and, under the metric `dot`,
/// their biases; and the place of the next row.
type Page<'py> = (Vec<String>, Option<Bound<'py, PyArray2<f32>>>, Option<Vec<f32>>, Option<u32>);

/// Whether bad rows are left out, how durable the change is, and its idempotency key.
#[derive(FromPyObject)]
pub(crate) struct ChangeHow(bool, bool, Option<String>);

impl Table {
    fn live(&self) -> PyResult<Arc<Live>> {
        self.process.check()?;
        // Only a complete value is ever there.
        Ok(self.live.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Commits what `fill` puts into a batch.
    fn commit(
        live: &Live,
        how: ChangeHow,
        fill: impl FnOnce(&mut BatchBuilder<'_>),
    ) -> PyResult<Changed> {
        let ChangeHow(skips, is_synced, key) = how;
        let durability = if is_synced { Durability::Synced } else { Durability::None };
        let mut batch = live.batch();
        fill(&mut batch);
        let (batch, bad) = batch.finish_without_bad();
        if !bad.is_empty() && !skips {
            return Err(errors::bad_rows(&bad));
        }
        let skipped = |BadRow { index, key, reason }| (index, key, reason);
        let skipped = bad.into_iter().map(skipped).collect();
        let version = live.base().version().to_owned();
        let Some(batch) = batch else {
            let position = live.now().position();
            return Ok(((version, position), (0, 0, 0, 0), (true, false), skipped));
        };
        let committed = live.commit(batch, durability, key.as_deref()).map_err(errors::change)?;
        let changes::Counts { inserted, replaced, deleted, missing } = committed.counts;
        Ok((
            (version, committed.position),
            (inserted, replaced, deleted, missing),
            (committed.is_durable, committed.is_repeated),
            skipped,
        ))
    }
}

#[pymethods]
impl Table {
    #[staticmethod]
    fn create(
        py: Python<'_>,
        folder: PathBuf,
        dim: usize,
        metric: &str,
        columns: Vec<(String, String)>,
    ) -> PyResult<()> {
        let schema = Schema { dim, metric: self::metric(metric)?, columns: types(columns)? };
        py.detach(|| changes::create(&folder, &schema)).map_err(errors::model)
    }

    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf, read_only: bool) -> PyResult<Self> {
        let process = Process::that_starts_threads()?;
        let access = if read_only { Access::Read } else { Access::Write };
        let options = ChangeOptions { access, ..ChangeOptions::default() };
        let live = py.detach(|| Live::open(&folder, options)).map_err(errors::change)?;
        let live = ManuallyDrop::new(RwLock::new(Arc::new(live)));
        Ok(Self { live, changing: RwLock::new(()), process })
    }

    /// An engine for the rows at every position, over the base of the last fold.
    fn start(&self, py: Python<'_>, how: How) -> PyResult<Model> {
        Model::of_table(py, self.live()?, how)
    }

    #[getter]
    fn position(&self) -> PyResult<u64> {
        Ok(self.live()?.now().position())
    }

    /// The rows that are there.
    #[getter]
    fn rows(&self) -> PyResult<usize> {
        Ok(self.live()?.now().live_rows())
    }

    /// Names and types of the attributes.
    #[getter]
    fn attributes(&self) -> PyResult<Vec<(String, String)>> {
        let live = self.live()?;
        let columns = live.schema().columns.iter();
        Ok(columns.map(|(name, kind)| (name.clone(), kind.to_string())).collect())
    }

    /// Puts rows, which are lines of JSON; their vectors are in these or in an array.
    fn put(
        &self,
        py: Python<'_>,
        rows: Vec<String>,
        vectors: Option<PyReadonlyArray2<'_, f32>>,
        how: ChangeHow,
    ) -> PyResult<Changed> {
        let live = self.live()?;
        let vectors = match &vectors {
            Some(vectors) => Some(arrays::components(vectors, live.schema().dim)?),
            None => None,
        };
        py.detach(|| {
            let _with_others = self.changing.read().unwrap_or_else(PoisonError::into_inner);
            Self::commit(&live, how, |batch| match vectors {
                None => rows.iter().for_each(|row| batch.upsert_json(row)),
                Some(vectors) => {
                    let vectors = vectors.chunks_exact(live.schema().dim);
                    let each = rows.iter().zip(vectors);
                    each.for_each(|(row, vector)| batch.upsert_json_with(row, vector));
                }
            })
        })
    }

    fn delete_keys(
        &self,
        py: Python<'_>,
        mut keys: Vec<String>,
        how: ChangeHow,
    ) -> PyResult<Changed> {
        let live = self.live()?;
        py.detach(|| {
            // A key may be there twice: its row is gone either way.
            keys.sort_unstable();
            keys.dedup();
            let _with_others = self.changing.read().unwrap_or_else(PoisonError::into_inner);
            Self::commit(&live, how, |batch| keys.iter().for_each(|key| batch.delete(key)))
        })
    }

    fn delete_filter(&self, py: Python<'_>, filter: &str, how: ChangeHow) -> PyResult<Changed> {
        let live = self.live()?;
        py.detach(|| {
            let sets = FilterSets::for_model(live.base());
            let _alone = self.changing.write().unwrap_or_else(PoisonError::into_inner);
            let now = live.now();
            let rows = meeting(&*now, &sets, filter).map_err(errors::of_question)?;
            let rows = RowSet::of(rows);
            Self::commit(&live, how, |batch| {
                rows.members(now.count()).for_each(|row| batch.delete(now.word(row)));
            })
        })
    }

    /// The rows as they are now; with a filter, those that meet it.
    fn selection(&self, py: Python<'_>, filter: Option<&str>) -> PyResult<Selection> {
        let live = self.live()?;
        py.detach(|| {
            let at = live.now();
            let rows = match filter {
                None => at.live(),
                Some(filter) => {
                    let sets = FilterSets::for_model(live.base());
                    RowSet::of(meeting(&*at, &sets, filter).map_err(errors::of_question)?)
                }
            };
            Ok(Selection { at, rows })
        })
    }

    /// Folds the changes into a new base. Whether there were any; if so, [`start`](Self::start)
    /// starts an engine over the new base.
    fn fold(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<bool> {
        let live = self.live()?;
        let mut signals = Signals::default();
        let folded = py.detach(|| {
            live.fold(&mut |now| {
                signals.go_on_telling(progress.as_ref(), (now.step, now.done, now.of))
            })
        });
        match folded {
            Ok(None) => Ok(false),
            Ok(Some(folded)) => {
                *self.live.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(folded);
                Ok(true)
            }
            Err(changes::ChangeError::FoldStopped) => Err(signals.raised()),
            Err(error) => Err(errors::change(error)),
        }
    }
}

/// Some rows of a table at one position.
#[pyclass(frozen, module = "kindred._kindred")]
pub(crate) struct Selection {
    at: Arc<AtPosition>,
    rows: RowSet,
}

#[pymethods]
impl Selection {
    #[getter]
    fn position(&self) -> u64 {
        self.at.position()
    }

    /// The place of a key's row, if it is there.
    fn place(&self, key: &str) -> Option<u32> {
        self.at.row_of(key).map(|row| row.0)
    }

    /// Rows from a place on, at most `limit`.
    fn page<'py>(
        &self,
        py: Python<'py>,
        from: u32,
        limit: usize,
        with_vectors: bool,
    ) -> PyResult<Page<'py>> {
        let table = self.at.table();
        let mut members = self.rows.members_in(from as usize..self.at.count());
        let (lines, numbers, biases, next) = py.detach(|| {
            let (mut lines, mut numbers, mut biases) = (Vec::new(), Vec::new(), Vec::new());
            for row in members.by_ref().take(limit) {
                let mut line = Vec::new();
                write_row(&mut line, &*self.at, row, false).map_err(errors::model)?;
                lines.push(String::from_utf8(line).map_err(errors::model)?);
                if with_vectors {
                    numbers.extend_from_slice(table.row(row));
                    biases.push(table.bias(row));
                }
            }
            PyResult::Ok((lines, numbers, biases, members.next().map(|row| row.0)))
        })?;
        let (vectors, biases) = match with_vectors {
            false => (None, None),
            true => {
                let vectors =
                    PyArray1::from_vec(py, numbers).reshape([lines.len(), self.at.dim()])?;
                (Some(vectors), (self.at.metric() == Metric::Dot).then_some(biases))
            }
        };
        Ok((lines, vectors, biases, next))
    }
}
