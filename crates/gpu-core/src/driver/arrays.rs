//! Structures of arrays that are declared with their lengths, so that what is allocated is also
//! what is counted before.

/// Declares a structure of arrays in device memory, with the length of each, which depends on a
/// value that `new` and `bytes` get.
macro_rules! device_arrays {
    (
        $(#[$doc:meta])*
        struct $name:ident($given:ident: $given_type:ty) {
            $($(#[$field_doc:meta])* $field:ident: [$value:ty; $len:expr],)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name {
            $($(#[$field_doc])* pub(crate) $field: $crate::driver::Array<$value>,)+
        }

        impl $name {
            /// Allocates them, all bits zero.
            pub(crate) fn new($given: $given_type) -> Result<Self, $crate::GpuError> {
                Ok(Self { $($field: $crate::driver::Array::zeroed($len)?,)+ })
            }

            /// Bytes on the device.
            pub(crate) fn bytes($given: $given_type) -> usize {
                [$(size_of::<$value>() * $len),+].iter().sum()
            }
        }
    };
}

pub(crate) use device_arrays;
