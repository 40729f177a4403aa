//! Graphs: sequences of copies and launches, recorded once and started as one.

use cust::stream::Stream;
use cust_raw::{CUgraph, CUgraphExec, CUstreamCaptureMode_enum};

use super::raw::check;
use crate::GpuError;

/// A recorded sequence of copies and launches, with the parameters that they were recorded with.
#[derive(Debug)]
pub(crate) struct Graph {
    graph: CUgraph,
    executable: CUgraphExec,
}

#[allow(unsafe_code)]
impl Graph {
    /// Records what `work` puts into the stream. None of it runs yet.
    pub(crate) fn record(
        stream: &Stream,
        work: impl FnOnce() -> Result<(), GpuError>,
    ) -> Result<Self, GpuError> {
        let mode = CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive. If it is being recorded already, the driver refuses.
        let status = unsafe { cust_raw::cuStreamBeginCapture_v2(stream.as_inner(), mode) };
        check(status, "recording a graph")?;
        let worked = work();
        let mut recorded = Self { graph: std::ptr::null_mut(), executable: std::ptr::null_mut() };
        // SAFETY: begun above; `graph` outlives the call.
        let status =
            unsafe { cust_raw::cuStreamEndCapture(stream.as_inner(), &raw mut recorded.graph) };
        worked?;
        check(status, "recording a graph")?;
        // SAFETY: the graph is complete; `executable` outlives the call.
        let status = unsafe {
            cust_raw::cuGraphInstantiateWithFlags(&raw mut recorded.executable, recorded.graph, 0)
        };
        check(status, "preparing a graph")?;
        // SAFETY: just made. Uploading the graph now makes its first launch faster.
        let status = unsafe { cust_raw::cuGraphUpload(recorded.executable, stream.as_inner()) };
        check(status, "uploading a graph")?;
        Ok(recorded)
    }

    /// Puts the recorded work into the stream.
    ///
    /// # Safety
    /// - The conditions of each recorded call hold from now until the stream has been synchronised.
    pub(crate) unsafe fn launch(&self, stream: &Stream) -> Result<(), GpuError> {
        // SAFETY: the graph is complete and alive; what it does is the caller's promise.
        let status = unsafe { cust_raw::cuGraphLaunch(self.executable, stream.as_inner()) };
        check(status, "starting a pass")
    }
}

impl Drop for Graph {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: both are made by `record` and destroyed only here. If recording failed they are
        // null, which the driver refuses without harm.
        unsafe {
            let _ = cust_raw::cuGraphExecDestroy(self.executable);
            let _ = cust_raw::cuGraphDestroy(self.graph);
        }
    }
}
