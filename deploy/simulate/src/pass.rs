//! How long a pass takes, by its batch: measured points, and straight lines between them.

/// Times of docs/performance.md: 2,196,016 rows × 300, k = 10, by batch, in milliseconds.
const MEASURED: [(&str, &str); 3] = [
    (
        "h200",
        "1:0.126,2:0.219,8:0.228,16:0.245,32:0.255,64:0.259,128:0.282,256:0.443,512:0.723,1024:1.280",
    ),
    ("cpu16", "1:1.30,64:5.86,256:15.80"),
    ("cpu2", "1:14.9,64:41.5,256:106.6"),
];

/// The time of a pass by its batch.
#[derive(Debug, Clone)]
pub struct Curve {
    /// Batch and seconds, by growing batch. The first batch is 1; the last one is the largest there is.
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// A name of a measured engine, or points: `1:0.5,64:1.5`, batch and milliseconds.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text =
            MEASURED.iter().find(|(name, _)| *name == text).map_or(text, |(_, points)| points);
        let wrong = |why: &str| {
            let names = MEASURED.map(|(name, _)| name).join(", ");
            format!(
                "`{text}` is no engine: {why}; name one of {names}, or points as in 1:0.5,64:1.5 (batch:ms)"
            )
        };
        let mut points = Vec::new();
        for point in text.split(',') {
            let (batch, ms) = point.split_once(':').ok_or_else(|| wrong("a point has a colon"))?;
            let batch: u32 = batch.parse().map_err(|_| wrong("a batch is a whole number"))?;
            let ms: f64 = ms.parse().map_err(|_| wrong("milliseconds are a number"))?;
            if !(ms > 0.0 && ms.is_finite()) {
                return Err(wrong("milliseconds are above zero"));
            }
            points.push((f64::from(batch), ms / 1e3));
        }
        if points[0].0 != 1.0 || points.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            return Err(wrong("batches start at 1 and grow"));
        }
        Ok(Self { points })
    }

    pub fn largest_batch(&self) -> usize {
        self.points[self.points.len() - 1].0 as usize
    }

    /// Requests per second if every pass has the largest batch.
    pub fn peak(&self) -> f64 {
        let (batch, seconds) = self.points[self.points.len() - 1];
        batch / seconds
    }

    /// Seconds of a pass.
    pub fn seconds(&self, batch: usize) -> f64 {
        let batch = batch as f64;
        let after = self.points.partition_point(|&(at, _)| at < batch);
        let (x, y) = self.points[after.min(self.points.len() - 1)];
        if after == 0 || x <= batch {
            return y;
        }
        let (x0, y0) = self.points[after - 1];
        y0 + (y - y0) * (batch - x0) / (x - x0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_points_there_are_straight_lines() {
        let curve = Curve::parse("1:1,5:3,10:4").unwrap();
        let ms = |batch| (curve.seconds(batch) * 1e6).round() / 1e3;
        assert_eq!([1, 3, 5, 6, 10].map(ms), [1.0, 2.0, 3.0, 3.2, 4.0]);
        assert_eq!((curve.largest_batch(), curve.peak().round()), (10, 2500.0));
        assert_eq!(Curve::parse("1:2").unwrap().seconds(1), 0.002);
    }

    #[test]
    fn an_engine_that_is_none_is_refused_with_the_cure() {
        for text in ["", "h100", "1", "2:1", "1:1,1:2", "1:0", "1:x", "1:inf", "1.5:1"] {
            let error = Curve::parse(text).unwrap_err();
            assert!(
                error.contains("h200, cpu16, cpu2") && error.contains("1:0.5,64:1.5"),
                "{error}"
            );
        }
    }
}
