//! Every format that vectors come in, in every packing, good and bad; and the way back out.

mod bad;
mod files;
mod good;
mod round_trip;
mod seeds;
mod support;
