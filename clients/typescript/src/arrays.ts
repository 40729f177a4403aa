/** Rows of a table in binary: a form of lines of JSON and of a NumPy file. */

/** All that comes before the numbers of a NumPy file is a multiple of this long. */
const ALIGNED = 64;

/**
 * @throws {TypeError} if `vectors` are no float32
 * @throws {RangeError} if there are not `dim` of them for each row
 */
export function formOf(rows: readonly object[], vectors: Float32Array, dim: number): FormData {
  // Plain JavaScript may have other arrays, whose bytes would be read as wrong numbers.
  if (!(vectors instanceof Float32Array)) throw new TypeError("vectors must be a Float32Array");
  if (!(Number.isInteger(dim) && dim > 0 && vectors.length === rows.length * dim)) {
    throw new RangeError(`vectors must have dim components for each row: ${vectors.length} are not ${rows.length} × ${dim}`);
  }
  const form = new FormData();
  form.append("rows", new Blob(rows.map((row) => JSON.stringify(row) + "\n")));
  form.append("vectors", new Blob([head(rows.length, dim), littleEndian(vectors)]));
  return form;
}

/** The head of a NumPy file of float32. */
function head(rows: number, dim: number): Uint8Array<ArrayBuffer> {
  const shape = `{'descr': '<f4', 'fortran_order': False, 'shape': (${rows}, ${dim}), }`;
  const fixed = 10;
  const length = Math.ceil((fixed + shape.length + 1) / ALIGNED) * ALIGNED - fixed;
  const text = new TextEncoder().encode(shape.padEnd(length - 1) + "\n");
  return new Uint8Array([0x93, ...new TextEncoder().encode("NUMPY"), 1, 0, length & 0xff, length >> 8, ...text]);
}

/** Whatever the order of the machine is. */
function littleEndian(vectors: Float32Array): DataView<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(vectors.byteLength));
  vectors.forEach((number, index) => view.setFloat32(index * 4, number, true));
  return view;
}
