//! Shared by the device's sets of rows and their kernel.

use crate::abi::{DevicePointer, DevicePointerMut};
use crate::resident::TILE_ROWS;

abi! {
    name: "sets";
    uses: ["resident"];
    constants {
        /// Words of a tile in a set by slots: bit 2j + i of word t stands for slot 8j + 2t + i.
        /// These are the rows of a tile that lane t of a quad has of a product.
        SET_WORDS: usize = TILE_ROWS / 32;
    }
    params {
        struct SetBySlotsParams {
            /// `[tiles * TILE_ROWS]`.
            slot_rows: DevicePointer<u32>,
            /// The address of the set by rows.
            of_rows: u64,
            /// `[tiles, SET_WORDS]`.
            of_slots: DevicePointerMut<u32>,
            tiles: u32,
            unused: u32,
        }
    }
    files {
        "" / row_sets for Every {
            (256) set_by_slots: SetBySlotsParams;
        }
    }
}
