//! Adds multiples of float32 rows to float64 rows.

use crate::instruction_set::dispatched;

/// `to` += `factor` · `from`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    /// A row of the sums.
    pub(crate) to: u32,
    /// A row of what is added.
    pub(crate) from: u32,
    pub(crate) factor: f32,
}

/// Some components of rows of float32.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    /// `[rows, dim]`.
    pub(crate) rows: &'a [f32],
    pub(crate) dim: usize,
    /// The first of these components. The sums have as many as they are wide.
    pub(crate) first: usize,
}

/// Float64 sums.
pub(crate) struct Sums<'a> {
    /// `[rows, width]`.
    pub(crate) sums: &'a mut [f64],
    pub(crate) width: usize,
    /// The number of the first row.
    pub(crate) first: u32,
}

dispatched! {
    /// Adds multiples of rows to rows, item by item. A product is exact, so fused and separate
    /// additions give the same bits.
    fn add_rows(to: Sums<'_>, from: Columns<'_>, items: &[Item]) =
        amx avx512, vnni512 avx512, avx512 avx512, vnni avx2, avx2 avx2, portable portable;
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(to: Sums<'_>, from: Columns<'_>, items: &[Item]) {
    portable(to, from, items);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(to: Sums<'_>, from: Columns<'_>, items: &[Item]) {
    portable(to, from, items);
}

/// The compiler uses the registers of the function that this becomes a part of.
#[inline(always)]
fn portable(to: Sums<'_>, from: Columns<'_>, items: &[Item]) {
    let Sums { sums, width, first } = to;
    for item in items {
        let sums = &mut sums[(item.to - first) as usize * width..][..width];
        let row = &from.rows[item.from as usize * from.dim + from.first..][..width];
        let factor = f64::from(item.factor);
        for (sum, &x) in sums.iter_mut().zip(row) {
            *sum += factor * f64::from(x);
        }
    }
}
