//! Types that Rust and CUDA share: typed addresses on the device, and plain numbers.

use std::fmt;
use std::marker::PhantomData;

/// The address of values in device memory, or in pinned memory, that a kernel reads: `const T*`.
#[repr(transparent)]
pub(crate) struct DevicePointer<T>(u64, PhantomData<*const T>);

/// The address of values that a kernel writes, or reads and writes: `T*`.
#[repr(transparent)]
pub(crate) struct DevicePointerMut<T>(u64, PhantomData<*mut T>);

macro_rules! pointer {
    ($name:ident, $form:literal) => {
        impl<T> $name<T> {
            /// The null pointer.
            pub(crate) const NULL: Self = Self::new(0);

            /// A pointer is only an address. The caller that launches a kernel with it is
            /// responsible for the memory there.
            pub(crate) const fn new(address: u64) -> Self {
                Self(address, PhantomData)
            }

            /// The address `count` values further.
            pub(crate) const fn offset(self, count: usize) -> Self {
                Self::new(self.0 + (count * size_of::<T>()) as u64)
            }

            /// The same address, for values of another type.
            pub(crate) const fn cast<U>(self) -> $name<U> {
                $name::new(self.0)
            }
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }

        impl<T: CType> CType for $name<T> {
            fn c_type() -> String {
                format!($form, T::c_type())
            }
        }
    };
}

impl<T> DevicePointerMut<T> {
    /// The same address, for a kernel that reads it.
    pub(crate) const fn as_const(self) -> DevicePointer<T> {
        DevicePointer::new(self.0)
    }
}

pointer!(DevicePointer, "const {}*");
pointer!(DevicePointerMut, "{}*");

/// A type that CUDA has too.
pub(crate) trait CType: Copy {
    /// Its name in CUDA.
    fn c_type() -> String;
}

macro_rules! c_types {
    ($($rust:ty, $c:literal;)+) => {
        $(impl CType for $rust {
            fn c_type() -> String {
                $c.to_owned()
            }
        })+
    };
}

c_types! {
    u8, "uint8_t";
    i32, "int";
    u32, "uint32_t";
    u64, "unsigned long long";
    f32, "float";
    f64, "double";
    [u32; 4], "uint4";
}
