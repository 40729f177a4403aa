//! The engines of the shards, each on the thread that made it. The caller's thread owns the first;
//! the others have threads of their own, to which the caller lends work.
//!
//! A pass over a shard takes some 50 µs, about as long as the system needs to wake a thread. So a
//! thread that has finished its work looks for the next for a while before it sleeps.

#![allow(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use contract::{Engine, EngineDescription};

/// How long a thread without work looks for more before it sleeps.
const LOOKS_FOR: Duration = Duration::from_micros(200);

/// Why the engines of the shards can't be made.
#[derive(Debug, thiserror::Error)]
pub enum StartError<E> {
    /// The first error of a shard's maker.
    #[error(transparent)]
    Engine(E),
    /// A maker panicked.
    #[error("making the engine of a shard failed: {0}")]
    Broken(String),
    /// The system refuses to start a thread.
    #[error("can't start the thread of a shard: {0}")]
    Thread(#[source] std::io::Error),
}

/// What the caller asks the others to do: a shard's index and its engine go in.
type Work<'a> = dyn Fn(usize, &mut dyn Engine) + Sync + 'a;

/// The engines.
pub(crate) struct Members {
    own: Box<dyn Engine>,
    others: Vec<Member>,
    pub(crate) descriptions: Vec<EngineDescription>,
}

/// An engine on another thread.
struct Member {
    link: Arc<Link>,
    /// `None` once it is joined.
    thread: Option<JoinHandle<()>>,
}

/// Between the caller and a thread.
#[derive(Default)]
struct Link {
    /// Whether there is an order that is not done.
    is_ordered: AtomicBool,
    order: Mutex<Option<Order>>,
    /// Its engine's counters after the last work.
    counters: Mutex<Vec<(&'static str, u64)>>,
}

enum Order {
    /// Work, and who waits for it.
    Work(&'static Work<'static>, Thread),
    End,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `is_there`: first it looks again and again, then it sleeps until another thread
/// unparks this one.
fn wait_until(is_there: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_there() {
        if began.elapsed() < LOOKS_FOR {
            std::hint::spin_loop();
        } else {
            thread::park();
        }
    }
}

impl Link {
    fn give(&self, order: Order, to: &Thread) {
        *lock(&self.order) = Some(order);
        self.is_ordered.store(true, Ordering::Release);
        to.unpark();
    }

    /// Carries out orders until the last.
    fn serve(&self, index: usize, mut engine: Box<dyn Engine>) {
        loop {
            wait_until(|| self.is_ordered.load(Ordering::Acquire));
            let Some(Order::Work(work, caller)) = lock(&self.order).take() else { return };
            work(index, &mut *engine);
            if let Ok(counters) = catch_unwind(AssertUnwindSafe(|| engine.counters())) {
                *lock(&self.counters) = counters;
            }
            // The caller may drop the work from here on.
            self.is_ordered.store(false, Ordering::Release);
            caller.unpark();
        }
    }
}

/// Waits for members when it is dropped, even after a panic.
struct Waits<'a>(&'a [Member]);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        for member in self.0 {
            wait_until(|| !member.link.is_ordered.load(Ordering::Acquire));
        }
    }
}

impl Members {
    /// Makes n engines at the same time: the first on this thread, each of the others on its own.
    ///
    /// # Errors
    /// If one can't be made. The others are dropped then.
    pub(crate) fn new<E>(
        count: usize,
        make: impl Fn(usize) -> Result<Box<dyn Engine>, E> + Send + Sync + 'static,
    ) -> Result<Self, StartError<E>>
    where
        E: Send + 'static,
    {
        let make = Arc::new(move |index| match catch_unwind(AssertUnwindSafe(|| make(index))) {
            Ok(made) => made.map_err(StartError::Engine),
            Err(panic) => Err(StartError::Broken(said(&*panic))),
        });
        let mut starting = Vec::new();
        for index in 1..count {
            let (link, make) = (Arc::new(Link::default()), make.clone());
            let (made, is_made) = mpsc::channel();
            let for_thread = link.clone();
            let work = move || match make(index) {
                Ok(engine) => {
                    let _ = made.send(Ok(engine.description()));
                    drop((made, make));
                    for_thread.serve(index, engine);
                }
                Err(error) => {
                    let _ = made.send(Err(error));
                }
            };
            let thread = thread::Builder::new().name("kindred-shard".into()).spawn(work);
            // Dropped after an error, it ends its thread.
            let thread = Some(thread.map_err(StartError::Thread)?);
            starting.push((Member { link, thread }, is_made));
        }
        let own = make(0);
        let (mut others, mut descriptions) = (Vec::new(), Vec::new());
        let mut first_error = None;
        for (member, is_made) in starting {
            let made = is_made.recv();
            match made.unwrap_or_else(|_| Err(StartError::Broken("its thread ended".to_owned()))) {
                Ok(description) => descriptions.push(description),
                Err(error) => first_error = first_error.or(Some(error)),
            }
            others.push(member);
        }
        let own = own?;
        if let Some(error) = first_error {
            return Err(error);
        }
        descriptions.insert(0, own.description());
        Ok(Self { own, others, descriptions })
    }

    /// The first engine.
    pub(crate) fn first(&self) -> &dyn Engine {
        &*self.own
    }

    /// Runs `work` with each engine on its thread, but `own` with the first, on this one. Returns
    /// the results in order.
    ///
    /// # Panics
    /// If any of them panics, once all are over.
    pub(crate) fn each<T: Send>(
        &mut self,
        work: impl Fn(usize, &mut dyn Engine) -> T + Sync,
        own: impl FnOnce(&mut dyn Engine) -> T,
    ) -> Vec<T> {
        type Slot<T> = Mutex<Option<thread::Result<T>>>;
        let others: Vec<Slot<T>> = self.others.iter().map(|_| Mutex::new(None)).collect();
        let run = |index: usize, engine: &mut dyn Engine| {
            let result = catch_unwind(AssertUnwindSafe(|| work(index, engine)));
            *lock(&others[index - 1]) = Some(result);
        };
        let run: &Work<'_> = &run;
        // SAFETY: only the lifetime changes. The members use the work until they are done, and
        // `waits` waits for that before this function returns or unwinds, so before anything that
        // the work borrows is dropped.
        let run: &'static Work<'static> = unsafe { std::mem::transmute(run) };
        let caller = thread::current();
        let waits = Waits(&self.others);
        for member in &self.others {
            let thread = member.thread.as_ref().expect("it is joined when it is dropped").thread();
            member.link.give(Order::Work(run, caller.clone()), thread);
        }
        let first = own(&mut *self.own);
        drop(waits);
        let others = others.into_iter().map(|slot| {
            let result = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
            result
                .expect("a member that is done has a result")
                .unwrap_or_else(|panic| resume_unwind(panic))
        });
        [first].into_iter().chain(others).collect()
    }

    /// The sums of the counters, by name.
    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut sums = self.own.counters();
        for member in &self.others {
            for &(name, count) in lock(&member.link.counters).iter() {
                match sums.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, sum)) => *sum += count,
                    None => sums.push((name, count)),
                }
            }
        }
        sums
    }
}

impl Drop for Member {
    /// Drops its engine on its thread.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.link.give(Order::End, thread.thread());
            // It has told its panic, if it panicked.
            let _ = thread.join();
        }
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("it panicked: {}", text.unwrap_or("without a message"))
}
