//! The models that are served at one time, and how each thread holds them.

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::ThreadId;

use super::{ServedModel, Service};

/// All models that are served at one time. The first is the default: routes without a model's name
/// query it.
#[derive(Debug)]
pub struct ModelSet {
    models: Vec<Arc<ServedModel>>,
}

impl ModelSet {
    /// The models, with different names. There may be none if tables are made later.
    pub fn new(models: Vec<Arc<ServedModel>>) -> Self {
        Self { models }
    }

    /// The same with this model, in the place of the one of its name if there is one.
    pub(super) fn with(&self, served: Arc<ServedModel>) -> Self {
        let mut models = self.models.clone();
        match self.position(served.name()) {
            Some(position) => models[position] = served,
            None => models.push(served),
        }
        Self { models }
    }

    /// All of them, the default first.
    pub fn models(&self) -> &[Arc<ServedModel>] {
        &self.models
    }

    /// The position of the model of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.models.iter().position(|model| model.name() == name)
    }

    /// The model of this name.
    pub fn named(&self, name: &str) -> Option<&Arc<ServedModel>> {
        self.position(name).map(|position| &self.models[position])
    }
}

/// The models as one thread holds them. Each HTTP thread has its own reference count; a shared one
/// would be contended by every request.
#[derive(Debug)]
pub(crate) struct ThreadModels {
    pub(crate) set: Arc<ModelSet>,
    pub(crate) service: Arc<Service>,
}

/// Where the requests of one thread find the models.
#[derive(Debug)]
pub(crate) struct View(Mutex<Arc<ThreadModels>>);

impl View {
    fn lock(&self) -> MutexGuard<'_, Arc<ThreadModels>> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }

    pub(crate) fn hold(&self) -> Arc<ThreadModels> {
        self.lock().clone()
    }
}

/// The current models. They are freed after this is dropped, as soon as no request holds them any
/// more.
#[derive(Debug)]
pub struct Models {
    current: Mutex<Current>,
    service: Arc<Service>,
}

#[derive(Debug)]
struct Current {
    set: Arc<ModelSet>,
    /// By the time of their first request.
    views: Vec<(ThreadId, Arc<View>)>,
}

impl Models {
    /// Serves these models. `service` is what their requests share.
    pub fn new(set: ModelSet, service: Arc<Service>) -> Self {
        let current = Mutex::new(Current { set: Arc::new(set), views: Vec::new() });
        Self { current, service }
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().expect("nothing panics while it holds this lock")
    }

    /// The parts that the requests to all models share.
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// The current models.
    pub fn current(&self) -> Arc<ModelSet> {
        self.lock().set.clone()
    }

    /// The view for the requests of the calling thread.
    pub(crate) fn view(&self) -> Arc<View> {
        let mut current = self.lock();
        let own = std::thread::current().id();
        if let Some((_, view)) = current.views.iter().find(|(thread, _)| *thread == own) {
            return view.clone();
        }
        let view = Arc::new(View(Mutex::new(self.held(&current.set))));
        current.views.push((own, view.clone()));
        view
    }

    fn held(&self, set: &Arc<ModelSet>) -> Arc<ThreadModels> {
        Arc::new(ThreadModels { set: set.clone(), service: self.service.clone() })
    }

    /// Serves other models from now on. Requests in progress keep the models that they began with.
    pub fn replace(&self, set: ModelSet) {
        let before = std::mem::replace(&mut self.lock().set, Arc::new(set));
        self.replace_for(&before, 0, 1);
    }

    /// Serves other models to `part` of `of` parts of the threads, rounded down, and the current
    /// models to the others. With no part, all threads have the current models again.
    pub(super) fn replace_for(&self, set: &Arc<ModelSet>, part: usize, of: usize) {
        let current = self.lock();
        let replaced = current.views.len() * part / of;
        let sets = std::iter::repeat_n(set, replaced).chain(std::iter::repeat(&current.set));
        let held: Vec<Arc<ThreadModels>> = current
            .views
            .iter()
            .zip(sets)
            .map(|((_, view), set)| std::mem::replace(&mut *view.lock(), self.held(set)))
            .collect();
        drop(current);
        // Outside the locks, because these may be the last references to a model.
        drop(held);
    }
}
