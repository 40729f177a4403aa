//! Macros for the methods of instruction sets.

/// Methods that are an expression of a set's instructions, always inlined.
macro_rules! operations {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $body:expr;)*) => {
        $(
            #[inline(always)]
            #[allow(unsafe_code, unused_unsafe)]
            fn $name(self, $($argument: $type),*) $(-> $result)? {
                // SAFETY: the set is the proof that the machine has the instructions. Loads and
                // stores are of references to as many bytes as a register has.
                unsafe { $body }
            }
        )*
    };
}

/// The same of each of four registers, written out: a loop might stay one, with its arrays in
/// memory.
#[allow(unused_macros)] // Few architectures have such sets.
macro_rules! four {
    (|$i:ident| $value:expr) => {
        [
            {
                let $i = 0;
                $value
            },
            {
                let $i = 1;
                $value
            },
            {
                let $i = 2;
                $value
            },
            {
                let $i = 3;
                $value
            },
        ]
    };
}

/// The method that runs algorithms with these features: all of them, or those of one kind of work,
/// and hands the others to the set in a field.
#[allow(unused_macros)] // Few architectures have such sets.
macro_rules! runs {
    (with $features:literal $(, only $work:ident, else $field:ident)?) => {
        #[inline(always)]
        #[allow(unsafe_code, unused_unsafe)]
        fn run<K: $crate::instruction_set::Kernel>(self, kernel: K) -> K::Output {
            #[target_feature(enable = $features)]
            fn inner<V: $crate::instruction_set::Vectors, K: $crate::instruction_set::Kernel>(
                set: V,
                kernel: K,
            ) -> K::Output {
                kernel.run(set)
            }
            $(
                if K::WORK != $crate::instruction_set::Work::$work {
                    return self.$field.run(kernel);
                }
            )?
            // SAFETY: only `detect` makes a set, after it has detected these features.
            unsafe { inner(self, kernel) }
        }
    };
}
