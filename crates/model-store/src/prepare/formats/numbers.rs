//! Checks of the numbers of a row.

use contract::score;

/// The tolerated relative difference between a stored and the computed norm. Components are often
/// written with five digits; a norm summed in float32 has a smaller error.
const NORM_TOLERANCE: f64 = 1e-4;

/// Checks that components are finite, as a model requires.
pub(super) fn check_finite(components: &[f32]) -> Result<(), String> {
    match components.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(index) => {
            Err(format!("component {} is not a finite float32: {}", index + 1, components[index]))
        }
    }
}

/// Checks a stored norm against the components.
pub(super) fn check_norm(stored: f32, components: &[f32]) -> Result<(), String> {
    let computed = score::norm(components);
    // Also false if the stored norm is NaN.
    if (f64::from(stored) - computed).abs() <= NORM_TOLERANCE * computed {
        return Ok(());
    }
    Err(format!(
        "the stored norm is {stored}, but the components have the norm {computed:.6}; if the file has no \
         norms, set another --format"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_is_named() {
        assert!(check_finite(&[0.0, f32::MAX]).is_ok());
        assert!(check_finite(&[0.0, f32::NAN]).unwrap_err().contains("component 2"));
    }
}
