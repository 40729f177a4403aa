//! The graph of nearest neighbours of a whole model.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use super::{Kindred, LONGEST};
use crate::graph::{self, GraphError, GraphOptions, GraphProgress, GraphSummary};

impl Kindred {
    /// Writes the exact graph of nearest neighbours to `file`: for each row its `k` nearest others,
    /// with the rows and score bits that [`nearest`](Self::nearest) gives. Waits until the file is
    /// complete.
    ///
    /// The name says the form, [`.npz` or `.parquet`](graph::GraphFormat). Rows without `k`
    /// neighbours are filled up with index −1 and score NaN. Work that was killed or stopped is in
    /// a folder beside the file, and the same call goes on from there. `on_progress` is called ten
    /// times a second; a break stops the work.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use kindred::graph::GraphOptions;
    /// use kindred::{Kindred, Model, Settings};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
    /// let options = GraphOptions { k: 5, first_rows: Some(1000), ..GraphOptions::default() };
    /// let file = folder.path().join("graph.npz");
    /// let made = kindred.graph(&file, &options, |_| ControlFlow::Continue(()))?;
    /// assert_eq!((made.rows, made.edges), (1000, 5000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`GraphError`].
    pub fn graph(
        &self,
        file: impl AsRef<Path>,
        options: &GraphOptions,
        mut on_progress: impl FnMut(GraphProgress) -> ControlFlow<()>,
    ) -> Result<GraphSummary, GraphError> {
        let asking = || self.shared.queue.asking(&self.account, Instant::now() + LONGEST);
        let model = self.shared.model.store();
        graph::write(model, &asking, file.as_ref(), options, &mut on_progress)
    }
}
