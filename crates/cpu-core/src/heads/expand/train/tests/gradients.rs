//! Gradients of the whole loss, against finite differences.

use super::*;

/// Words of a tiny vocabulary, of which the first are terms; some texts are equal, empty, or repeat words.
fn tiny() -> (Vec<f32>, Vec<Example>) {
    let example = |query: &[u32], relevant: &[u32], irrelevant: &[u32]| Example {
        query: query.to_vec(),
        relevant: relevant.to_vec(),
        irrelevant: Some(irrelevant.to_vec()),
    };
    let examples = vec![
        example(&[0, 9, 0], &[1, 2, 10, 2], &[3, 4]),
        example(&[5, 6], &[7, 8, 11], &[1, 2, 10, 2]),
        example(&[2], &[1, 2, 10, 2], &[]),
        example(&[10, 3, 4], &[6, 5, 7, 1], &[8, 11, 0]),
    ];
    (random(12 * 4, 17), examples)
}

/// All parts of what is trained, in float64.
#[derive(Clone)]
struct Parts {
    biases: Vec<f64>,
    projection: Vec<f64>,
    vectors: Vec<f64>,
}

/// The whole loss, word for word, in float64.
fn plain_loss(
    settings: &Settings,
    vectors: &[f32],
    dim: usize,
    examples: &[Example],
    parts: &Parts,
    flops: [f64; 2],
) -> f64 {
    let weights = |text: &[u32]| -> Vec<f64> {
        let x = |&word: &u32| -> Vec<f64> {
            let e = &vectors[word as usize * dim..][..dim];
            let component = |p: &[f64]| p.iter().zip(e).map(|(p, e)| p * f64::from(*e)).sum();
            parts.projection.chunks_exact(dim).map(component).collect()
        };
        let tokens: Vec<Vec<f64>> = text.iter().map(x).collect();
        let weight = |(w, bias): (&[f64], &f64)| {
            let score = |x: &Vec<f64>| x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>() + bias;
            let f = tokens.iter().map(score).fold(0.0, f64::max);
            if settings.log1p { f.ln_1p() } else { f }
        };
        parts.vectors.chunks_exact(dim).zip(&parts.biases).map(weight).collect()
    };
    let queries: Vec<Vec<f64>> = examples.iter().map(|one| weights(&one.query)).collect();
    let relevant = examples.iter().map(|one| &one.relevant);
    let given: Vec<&Vec<u32>> =
        relevant.chain(examples.iter().filter_map(|one| one.irrelevant.as_ref())).collect();
    let texts: Vec<Vec<f64>> = given.iter().map(|text| weights(text)).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let of_query = |(index, query): (usize, &Vec<f64>)| {
        let score = |text: usize| dot(query, &texts[text]);
        match settings.loss {
            Loss::InfoNce { temperature } => {
                let others =
                    (0..texts.len()).filter(|&at| at == index || given[at] != given[index]);
                let scaled = |at: usize| (score(at) / f64::from(temperature)).exp();
                -(scaled(index) / others.map(scaled).sum::<f64>()).ln()
            }
            Loss::Margin { margin } => {
                let irrelevant = score(examples.len() + index);
                (f64::from(margin) - score(index) + irrelevant).max(0.0)
            }
        }
    };
    let mean = queries.iter().enumerate().map(of_query).sum::<f64>() / queries.len() as f64;
    let square = |all: &[Vec<f64>]| -> f64 {
        let mean = |v: usize| all.iter().map(|one| one[v]).sum::<f64>() / all.len() as f64;
        (0..parts.biases.len()).map(|v| mean(v).powi(2)).sum()
    };
    mean + flops[0] * square(&queries) + flops[1] * square(&texts)
}

#[test]
fn gradients_of_the_whole_loss_are_those_of_finite_differences() {
    let (dim, (vectors, examples)) = (4, tiny());
    let data = Data { train: &examples, dev: &[], vectors: &vectors, dim, terms: Terms::First(9) };
    let pool = pool(2);
    for (loss, log1p) in [
        (Loss::InfoNce { temperature: 0.7 }, true),
        (Loss::InfoNce { temperature: 2.0 }, false),
        (Loss::Margin { margin: 1.5 }, true),
        (Loss::Margin { margin: 0.4 }, false),
    ] {
        let settings = Settings {
            loss,
            log1p,
            bias: StartBias::Value(-0.1),
            own_vectors: true,
            ..Settings::default()
        };
        let mut trainer = Trainer::new(data, &settings, &pool);
        let near = |all: &mut [f32], seed| {
            let shift = random(all.len(), seed);
            all.iter_mut().zip(shift).for_each(|(x, shift)| *x += 0.2 * shift);
        };
        near(trainer.projection.as_mut().unwrap(), 3);
        near(trainer.vectors.to_mut(), 4);
        near(&mut trainer.biases, 5);
        let all: Vec<&Example> = examples.iter().collect();
        let flops = [0.3, 0.2];
        let found = trainer.gradients(&Batch::new(&all), flops);

        let wide = |all: &[f32]| -> Vec<f64> { all.iter().map(|&x| f64::from(x)).collect() };
        let mut parts = Parts {
            biases: wide(&trainer.biases),
            projection: wide(trainer.projection.as_ref().unwrap()),
            vectors: wide(&trainer.vectors),
        };
        let whole = |parts: &Parts| plain_loss(&settings, &vectors, dim, &examples, parts, flops);
        let Means { loss, flops_queries, flops_texts, .. } = found.means;
        let sum = loss + flops[0] * flops_queries + flops[1] * flops_texts;
        assert!((sum - whole(&parts)).abs() < 1e-5, "{sum} and {}", whole(&parts));

        let of_vectors = found.vectors.unwrap();
        let mut dense = vec![0.0; trainer.vectors.len()];
        for (row, &term) in of_vectors.terms.unwrap().iter().enumerate() {
            let own = &of_vectors.vectors[row * dim..][..dim];
            dense[term as usize * dim..][..dim].copy_from_slice(own);
        }
        // Smaller than the distance of any maximum from the next, and of any from zero.
        const STEP: f64 = 1e-6;
        type Part = fn(&mut Parts) -> &mut Vec<f64>;
        let all: [(&[f32], Part); 3] = [
            (&found.biases, |parts| &mut parts.biases),
            (found.projection.as_ref().unwrap(), |parts| &mut parts.projection),
            (&dense, |parts| &mut parts.vectors),
        ];
        let mut largest = 0.0f64;
        for (which, (gradients, part)) in all.into_iter().enumerate() {
            for (index, &gradient) in gradients.iter().enumerate() {
                let around = [STEP, -2.0 * STEP].map(|step| {
                    part(&mut parts)[index] += step;
                    whole(&parts)
                });
                part(&mut parts)[index] += STEP;
                let slope = (around[0] - around[1]) / (2.0 * STEP);
                let error = (slope - f64::from(gradient)).abs();
                assert!(error < 1e-5 * (1.0 + slope.abs()), "{which}: {slope} and {gradient}");
                largest = largest.max(slope.abs());
            }
        }
        assert!(largest > 0.1, "{loss:?}: {largest}");
    }
}
