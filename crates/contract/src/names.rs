//! Names of enums' variants and of counters, as settings, files and metrics have them.

/// Gives an enum without fields `ALL`, its variants in this order; `name` and `named`, from a
/// variant to its name and back; and `Display`, which writes the name.
///
/// ```
/// #[derive(Debug, Clone, Copy, PartialEq)]
/// pub enum Side {
///     Left,
///     Right,
/// }
///
/// contract::names! { Side { Left: "left", Right: "right" } }
///
/// assert_eq!(Side::ALL.map(Side::name), ["left", "right"]);
/// assert_eq!((Side::named("right"), Side::named("up")), (Some(Side::Right), None));
/// ```
#[macro_export]
macro_rules! names {
    ($type:ident { $($variant:ident: $name:literal),+ $(,)? }) => {
        impl $type {
            /// All of them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The one with this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// Declares a structure of counters, which can be added. `named` has those that metrics have, with
/// their names there.
#[macro_export]
macro_rules! counters {
    (
        $(#[$doc:meta])*
        $name:ident { $($(#[$field_doc:meta])* $field:ident $(: $label:literal)?,)+ }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: u64,)+
        }

        impl $name {
            /// Those that metrics have, with their names there.
            pub fn named(self) -> Vec<(&'static str, u64)> {
                vec![$($(($label, self.$field),)?)+]
            }
        }

        impl ::std::ops::Add for $name {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self { $($field: self.$field + other.$field,)+ }
            }
        }
    };
}
