//! From the products of a text's vector with the output rows to scores and probabilities, by the
//! loss that a classifier was trained with.
//!
//! The formulas are fastText's (`loss.cc`, `model.cc`), whose sums and exponentials are in float32.
//! It adds 1e-5 to each probability before it takes the logarithm that it ranks by, so those that
//! it says are larger by that, up to 1.00001; here they end at 1. With z the products:
//!
//! - softmax: exp(z − max z), divided by the sum of these, plus 1e-5;
//! - negative sampling and one-vs-all: σ(z) plus 1e-5, where σ is read from a table of 512 steps
//!   between −8 and 8;
//! - hierarchical softmax: each label is a leaf of the Huffman tree of the labels' counts, each inner
//!   node has an output row, and a label's probability is the product of σ(z) + 1e-5 for each step
//!   to the right on its way, and 1 − σ(z) + 1e-5 for each to the left.

/// How scores become probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// Hierarchical softmax.
    HierarchicalSoftmax,
    /// Negative sampling: each label has a probability of its own.
    NegativeSampling,
    /// Softmax.
    Softmax,
    /// One against all others: each label has a probability of its own.
    OneVsAll,
}

impl LossKind {
    /// That of a file's number; otherwise the fault.
    pub(super) fn of_number(number: i32) -> Result<Self, String> {
        match number {
            1 => Ok(Self::HierarchicalSoftmax),
            2 => Ok(Self::NegativeSampling),
            3 => Ok(Self::Softmax),
            4 => Ok(Self::OneVsAll),
            other => Err(format!("the loss is {other}; it must be from 1 to 4")),
        }
    }

    /// Its name, as fastText's `-loss` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::HierarchicalSoftmax => "hs",
            Self::NegativeSampling => "ns",
            Self::Softmax => "softmax",
            Self::OneVsAll => "ova",
        }
    }

    /// Whether the probabilities of all labels add up to 1: one label is right.
    pub fn is_one_label(self) -> bool {
        matches!(self, Self::HierarchicalSoftmax | Self::Softmax)
    }
}

/// A label's score and probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// The product of the text's vector with the label's row; with hierarchical softmax, where
    /// labels have none, the logarithm of the probability.
    pub score: f32,
    /// From 0 to 1.
    pub probability: f64,
}

/// A part of probabilities that fastText adds, so that none is 0.
const ADDED: f64 = 1e-5;

/// A loss, and the tree of hierarchical softmax.
#[derive(Debug)]
pub(super) struct Loss {
    pub(super) kind: LossKind,
    /// The Huffman tree of hierarchical softmax: for each node but the last, which is the root, the
    /// node above it, and whether it is the right one below that. The labels are the first nodes.
    tree: Vec<(u32, bool)>,
    sigmoids: Vec<f32>,
}

impl Loss {
    /// `counts`: how often each label occurred in training.
    pub(super) fn new(kind: LossKind, counts: &[i64]) -> Self {
        let tree = match kind {
            LossKind::HierarchicalSoftmax => huffman_tree(counts),
            _ => Vec::new(),
        };
        Self { kind, tree, sigmoids: sigmoid_table() }
    }

    /// Each label's score and probability. `products` are those of the text's vector with the
    /// output rows.
    pub(super) fn scored(&self, products: &[f32]) -> Vec<Scored> {
        match self.kind {
            LossKind::Softmax => {
                let max = products.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let shares: Vec<f32> = products.iter().map(|z| (z - max).exp()).collect();
                let sum: f32 = shares.iter().sum();
                let of = |(&score, share): (&f32, f32)| Scored {
                    score,
                    probability: with_added(share / sum).min(1.0),
                };
                products.iter().zip(shares).map(of).collect()
            }
            LossKind::NegativeSampling | LossKind::OneVsAll => {
                let of = |&score: &f32| Scored {
                    score,
                    probability: with_added(self.sigmoid(score)).min(1.0),
                };
                products.iter().map(of).collect()
            }
            LossKind::HierarchicalSoftmax => {
                let labels = products.len();
                let sigmoid = |z: &f32| 1.0 / (1.0 + (-z).exp());
                let sigmoids: Vec<f32> = products.iter().map(sigmoid).collect();
                // From the root down: a node comes before the node above it.
                let mut scores = vec![0f32; self.tree.len() + 1];
                for (node, &(above, right)) in self.tree.iter().enumerate().rev() {
                    let sigmoid = sigmoids[above as usize - labels];
                    let step = if right { sigmoid } else { 1.0 - sigmoid };
                    scores[node] = scores[above as usize] + with_added(step).ln() as f32;
                }
                let of =
                    |&score: &f32| Scored { score, probability: f64::from(score.exp()).min(1.0) };
                scores[..labels].iter().map(of).collect()
            }
        }
    }

    /// The derivative of a label's score by each product that it depends on, as output rows and
    /// numbers. For all losses but hierarchical softmax the score is one of the products.
    pub(super) fn gradient(&self, label: usize, products: &[f32]) -> Vec<(u32, f64)> {
        match self.kind {
            LossKind::HierarchicalSoftmax => {
                let (mut steps, mut node) = (Vec::new(), label);
                while let Some(&(above, right)) = self.tree.get(node) {
                    let row = above as usize - products.len();
                    let sigmoid = 1.0 / (1.0 + (-f64::from(products[row])).exp());
                    steps.push((row as u32, if right { 1.0 - sigmoid } else { -sigmoid }));
                    node = above as usize;
                }
                steps
            }
            _ => vec![(label as u32, 1.0)],
        }
    }

    fn sigmoid(&self, z: f32) -> f32 {
        match z {
            z if z < -BOUND => 0.0,
            z if z > BOUND => 1.0,
            // No number has no place, and stays none.
            z if z.is_nan() => z,
            z => self.sigmoids[((z + BOUND) * STEPS as f32 / BOUND / 2.0) as usize],
        }
    }
}

/// Steps of the table.
const STEPS: usize = 512;
/// Where it ends in both directions.
const BOUND: f32 = 8.0;

fn sigmoid_table() -> Vec<f32> {
    let at = |step: usize| (step as f32 * 2.0 * BOUND) / STEPS as f32 - BOUND;
    (0..=STEPS).map(|step| (1.0 / (1.0 + f64::from((-at(step)).exp()))) as f32).collect()
}

fn with_added(probability: f32) -> f64 {
    f64::from(probability) + ADDED
}

/// The Huffman tree of leaves with these counts, which fall: two smallest nodes become one, again
/// and again.
fn huffman_tree(counts: &[i64]) -> Vec<(u32, bool)> {
    let leaves = counts.len();
    // The number of leaves that are left, and the first inner node that is left: counts of the
    // former fall, and those of the latter grow.
    let (mut leaf, mut inner) = (leaves, leaves);
    let mut weights = counts.to_vec();
    let mut tree = vec![(0, false); (2 * leaves).saturating_sub(2)];
    for node in leaves..2 * leaves - leaves.min(1) {
        let mut weight = 0i64;
        for right in [false, true] {
            let is_leaf = leaf > 0 && (inner >= node || weights[leaf - 1] < weights[inner]);
            let child = if is_leaf { leaf - 1 } else { inner };
            (leaf, inner) = if is_leaf { (child, inner) } else { (leaf, child + 1) };
            tree[child] = (node as u32, right);
            weight = weight.saturating_add(weights[child]);
        }
        weights.push(weight);
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_smallest_nodes_become_one_again_and_again() {
        // 20 + 10 = 30 (node 4), 30 + 30 = 60 (node 5), 40 + 60 (node 6, the root).
        let tree = [(6, false), (5, true), (4, true), (4, false), (5, false), (6, true)];
        assert_eq!(huffman_tree(&[40, 30, 20, 10]), tree);
        assert_eq!(huffman_tree(&[1]), []);
        assert_eq!(huffman_tree(&[]), []);
    }

    #[test]
    fn a_tree_that_is_a_chain_takes_no_more_than_another() {
        let labels = 100_000;
        let loss = Loss::new(LossKind::HierarchicalSoftmax, &vec![0; labels]);
        let products = vec![0.0; labels];
        assert_eq!(loss.scored(&products).len(), labels);
        assert!(loss.gradient(0, &products).len() < labels);
    }

    #[test]
    fn probabilities_of_a_tree_add_up_to_nearly_one() {
        let loss = Loss::new(LossKind::HierarchicalSoftmax, &[9, 7, 7, 3, 1]);
        let scored = loss.scored(&[0.5, -2.0, 3.0, 0.0, f32::NAN]);
        let sum: f64 = scored.iter().map(|one| one.probability).sum();
        assert!((sum - 1.0).abs() < 1e-4, "{sum}");
    }

    #[test]
    fn sigmoids_come_from_the_table_and_end_at_its_bounds() {
        let loss = Loss::new(LossKind::OneVsAll, &[1, 1]);
        let probability = |z: f32| loss.scored(&[z])[0].probability;
        assert_eq!(probability(-9.0), ADDED);
        assert_eq!(probability(9.0), 1.0);
        assert!((probability(0.0) - 0.5 - ADDED).abs() < 1e-7);
        // Within one step of 1/32, nothing changes.
        assert_eq!(probability(0.001), probability(0.03));
        assert_ne!(probability(0.001), probability(0.04));
        assert!(probability(f32::NAN).is_nan() || probability(f32::NAN) == 1.0);
        assert!(probability(8.0) > 0.999 && probability(-8.0) < 0.001);
    }

    #[test]
    fn a_softmax_that_is_sure_ends_at_one() {
        let scored = Loss::new(LossKind::Softmax, &[]).scored(&[100.0, 0.0]);
        assert_eq!(scored[0].probability, 1.0);
        assert_eq!(scored[1].probability, ADDED);
    }
}
