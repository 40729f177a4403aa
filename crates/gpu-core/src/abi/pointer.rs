//! Typed addresses on the device, which Rust and CUDA share.

use std::fmt;
use std::marker::PhantomData;

/// The address of values in device memory, or in pinned memory, that a kernel reads: `const T*`.
#[repr(transparent)]
pub struct DevicePointer<T>(u64, PhantomData<*const T>);

/// The address of values that a kernel writes, or reads and writes: `T*`.
#[repr(transparent)]
pub struct DevicePointerMut<T>(u64, PhantomData<*mut T>);

macro_rules! pointer {
    ($name:ident) => {
        impl<T> $name<T> {
            /// The null pointer.
            pub const NULL: Self = Self::new(0);

            /// A pointer is only an address. The caller that launches a kernel with it is
            /// responsible for the memory there.
            pub const fn new(address: u64) -> Self {
                Self(address, PhantomData)
            }

            /// The address `count` values further.
            pub const fn offset(self, count: usize) -> Self {
                Self::new(self.0 + (count * size_of::<T>()) as u64)
            }

            /// The same address, for values of another type.
            pub const fn cast<U>(self) -> $name<U> {
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
    };
}

impl<T> DevicePointerMut<T> {
    /// The same address, for a kernel that reads it.
    pub const fn as_const(self) -> DevicePointer<T> {
        DevicePointer::new(self.0)
    }
}

pointer!(DevicePointer);
pointer!(DevicePointerMut);
