//! Rates of several GPUs: of each alone, and of all at the same time.

use std::sync::Barrier;

/// What one GPU did, in anything per second.
pub(crate) struct Rate {
    pub(crate) gpu: u32,
    /// While the others waited.
    pub(crate) alone: f64,
    /// While the others worked as well.
    pub(crate) together: f64,
}

/// A thread for each GPU makes what works there, and says how fast it is: first each alone, then
/// all together.
pub(crate) fn rates<T>(
    gpus: &[u32],
    make: impl Fn(usize, u32) -> T + Sync,
    rate: impl Fn(&mut T) -> f64 + Sync,
) -> Vec<Rate> {
    let barrier = Barrier::new(gpus.len());
    std::thread::scope(|scope| {
        let of_gpu = |(index, &gpu): (usize, &u32)| {
            let (barrier, make, rate) = (&barrier, &make, &rate);
            scope.spawn(move || {
                let mut works = make(index, gpu);
                let mut alone = 0.0;
                for turn in 0..gpus.len() {
                    barrier.wait();
                    if turn == index {
                        alone = rate(&mut works);
                    }
                }
                barrier.wait();
                Rate { gpu, alone, together: rate(&mut works) }
            })
        };
        let threads: Vec<_> = gpus.iter().enumerate().map(of_gpu).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    })
}

/// Prints what each did, and all of them beside the first alone.
pub(crate) fn report(rates: &[Rate], what: &str) {
    for Rate { gpu, alone, together } in rates {
        println!("cuda:{gpu}: {alone:>9.0} {what}/s alone, {together:>9.0} beside the others");
    }
    let all: f64 = rates.iter().map(|rate| rate.together).sum();
    println!(
        "{} GPUs: {all:.0} {what}/s, {:.2} x the first alone",
        rates.len(),
        all / rates[0].alone
    );
}
