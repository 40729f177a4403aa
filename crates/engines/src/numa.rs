//! Nodes of memory on machines with several processors (NUMA): an engine on each reads its table
//! from memory near its cores.
//!
//! Threads inherit the cores of the thread that starts them, and memory is taken from the node of
//! the thread that writes it first. So an engine that is made on a thread of one node has its
//! threads and its derived table there.

/// The cores of each node that this process may use; one list if the system does not say.
pub fn nodes() -> Vec<Vec<usize>> {
    #[cfg(target_os = "linux")]
    return linux::nodes_in("/sys/devices/system/node".as_ref(), &linux::allowed());
    #[cfg(not(target_os = "linux"))]
    vec![Vec::new()]
}

/// Lets this thread, and those that it starts from now on, run on these cores only.
///
/// # Errors
/// If the system refuses.
pub fn stay_on(cores: &[usize]) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    return linux::stay_on(cores);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = cores;
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io;
    use std::path::Path;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// The cores that this thread may use.
    pub(super) fn allowed() -> Vec<usize> {
        let set = sched_getaffinity(None).unwrap_or_default();
        (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect()
    }

    pub(super) fn stay_on(cores: &[usize]) -> io::Result<()> {
        let mut set = CpuSet::new();
        cores.iter().filter(|&&core| core < CpuSet::MAX_CPU).for_each(|&core| set.set(core));
        Ok(sched_setaffinity(None, &set)?)
    }

    /// The allowed cores of each node in this folder that has some.
    pub(super) fn nodes_in(folder: &Path, allowed: &[usize]) -> Vec<Vec<usize>> {
        let node = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            let number: usize = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
            let cores = listed(&fs::read_to_string(entry.path().join("cpulist")).ok()?)?;
            let cores: Vec<usize> =
                cores.into_iter().filter(|core| allowed.contains(core)).collect();
            (!cores.is_empty()).then_some((number, cores))
        };
        let mut nodes: Vec<(usize, Vec<usize>)> =
            fs::read_dir(folder).into_iter().flatten().filter_map(node).collect();
        nodes.sort_unstable();
        match nodes.len() {
            0 => vec![allowed.to_vec()],
            _ => nodes.into_iter().map(|(_, cores)| cores).collect(),
        }
    }

    /// The numbers in a list such as `0-3,8`.
    fn listed(text: &str) -> Option<Vec<usize>> {
        let mut all = Vec::new();
        for range in text.trim().split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            all.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
        }
        Some(all)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn nodes_have_the_cores_that_may_be_used() {
            let folder = tempfile::tempdir().unwrap();
            assert_eq!(nodes_in(folder.path(), &[1, 2]), [[1, 2]], "the system does not say");
            let write = |node: &str, cores: &str| {
                fs::create_dir(folder.path().join(node)).unwrap();
                fs::write(folder.path().join(node).join("cpulist"), cores).unwrap();
            };
            write("node10", "8-9\n");
            write("node2", "0-3,6\n");
            write("node3", "\n");
            write("power", "0-9");
            assert_eq!(nodes_in(folder.path(), &[1, 2, 6, 8, 20]), [vec![1, 2, 6], vec![8]]);
            assert_eq!(nodes_in(folder.path(), &[9]), [[9]]);
            assert_eq!((listed("4"), listed("x"), listed("")), (Some(vec![4]), None, Some(vec![])));
        }

        #[test]
        fn a_thread_and_those_that_it_starts_stay_on_their_cores() {
            let own = allowed();
            let last = *own.last().unwrap();
            let work = move || {
                stay_on(&[last]).unwrap();
                (allowed(), std::thread::spawn(allowed).join().unwrap())
            };
            let (there, started) = std::thread::spawn(work).join().unwrap();
            assert_eq!((there, started), (vec![last], vec![last]));
            assert_eq!(allowed(), own, "other threads stay where they are");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_has_a_node_whose_cores_can_be_used() {
        let nodes = nodes();
        assert!(!nodes.is_empty());
        for cores in nodes {
            std::thread::spawn(move || stay_on(&cores)).join().unwrap().unwrap();
        }
    }
}
