//! Training with an accelerator gives what it gives without, also where the accelerator declines or fails.

use std::cell::RefCell;
use std::rc::Rc;

use super::learning::{planted, planted_settings};
use super::*;
use crate::heads::expand::gradients::{Entry, Gradients, Rows, gradients};

/// What an accelerator was asked, and where it declines.
#[derive(Default)]
struct Log {
    touched: usize,
    gradients: usize,
    replaced: usize,
    /// Every how manieth question is too much; 0: none.
    too_many: usize,
    /// The question at which it fails; 0: none.
    fails: usize,
}

/// Terms of its own, computed by plain loops.
struct Plain {
    vectors: Vec<f32>,
    biases: Vec<f32>,
    dim: usize,
    texts: (Vec<f32>, Vec<usize>),
    log: Rc<RefCell<Log>>,
}

impl Plain {
    fn count(&self, count: impl Fn(&mut Log) -> &mut usize) -> Result<(), Declined> {
        let mut log = self.log.borrow_mut();
        *count(&mut log) += 1;
        let asked = log.touched + log.gradients + log.replaced;
        match () {
            () if log.fails == asked => Err(Declined::Failed(format!("at question {asked}"))),
            () if log.too_many > 0 && asked.is_multiple_of(log.too_many) => Err(Declined::TooMany),
            () => Ok(()),
        }
    }
}

impl Accelerator for Plain {
    fn touched(&mut self, vectors: &[f32], ends: &[usize]) -> Result<Vec<Touched>, Declined> {
        self.count(|log| &mut log.touched)?;
        self.texts = (vectors.to_vec(), ends.to_vec());
        let norms = vec![0.0; self.biases.len()];
        let table = Table::new(&self.vectors, &norms, self.dim).under_dot(Some(&self.biases));
        Ok(touched(TextVectors::new(vectors, self.dim, ends), &table))
    }

    fn gradients(&mut self, entries: &[Entry], of_terms: bool) -> Result<Gradients, Declined> {
        self.count(|log| &mut log.gradients)?;
        let norms = vec![0.0; self.biases.len()];
        let table = Table::new(&self.vectors, &norms, self.dim).under_dot(Some(&self.biases));
        let texts = TextVectors::new(&self.texts.0, self.dim, &self.texts.1);
        let mut all = gradients(texts, &table, entries, Rows::Touched, &pool(1));
        if !of_terms {
            all.terms.vectors.clear();
        }
        Ok(all)
    }

    fn replace(&mut self, terms: &[u32], biases: &[f32], vectors: &[f32]) -> Result<(), Declined> {
        let with_vectors = vectors.len() / self.dim;
        for (index, (&term, bias)) in terms.iter().zip(biases).enumerate() {
            let before = std::mem::replace(&mut self.biases[term as usize], *bias);
            assert!(
                index < with_vectors || before.to_bits() != bias.to_bits(),
                "only changed ones"
            );
        }
        for (&term, vector) in terms.iter().zip(vectors.chunks_exact(self.dim)) {
            self.vectors[term as usize * self.dim..][..self.dim].copy_from_slice(vector);
        }
        match self.count(|log| &mut log.replaced) {
            Err(Declined::TooMany) => Ok(()),
            other => other,
        }
    }
}

#[test]
fn an_accelerator_changes_nothing_but_the_time() {
    let (vectors, examples) = planted(300);
    let (learned, dev) = examples.split_at(250);
    let dim = vectors.len() / 240;
    let data = Data { train: learned, dev, vectors: &vectors, dim, terms: Terms::First(120) };
    for own_vectors in [false, true] {
        let settings = Settings { own_vectors, epochs: 3, ..planted_settings() };
        let expected = train(data, &settings, &pool(2), &mut go_on).unwrap();
        for (too_many, fails, failure) in
            [(0, 0, None), (4, 0, None), (0, 1, Some("question 1")), (8, 35, Some("question 35"))]
        {
            let log = Rc::new(RefCell::new(Log { too_many, fails, ..Log::default() }));
            let mut accelerate = |vectors: &[f32], biases: &[f32], norm: f64| {
                assert!(
                    norm > 0.0 && biases.iter().all(|bias| bias.to_bits() == biases[0].to_bits())
                );
                let (vectors, biases) = (vectors.to_vec(), biases.to_vec());
                let texts = (Vec::new(), Vec::new());
                let made = Plain { vectors, biases, dim, texts, log: log.clone() };
                Ok::<_, Infallible>(Some(Box::new(made) as Box<dyn Accelerator>))
            };
            let found = train_with(data, &settings, &pool(2), &mut accelerate, &mut go_on).unwrap();
            let said = found.accelerator_failure.as_deref();
            assert_eq!(said.and_then(|said| said.strip_prefix("at ")), failure);
            let found = Trained { accelerator_failure: None, ..found };
            assert!(found == expected, "own vectors: {own_vectors}, {failure:?}");
            let log = log.borrow();
            if (too_many, fails) == (0, 0) {
                // 250 / 32 steps an epoch, and the deciding examples at its end.
                assert_eq!((log.touched, log.gradients, log.replaced), (24, 21, 21));
            }
        }
    }
}
