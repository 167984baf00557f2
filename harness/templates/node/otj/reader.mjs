// Reads otj without packages. Put the implementation that you want to test in its place.
import fs from "node:fs";

/** The input is not what the format allows. */
export class Refused extends Error {}

/** There is no way to do this, whatever the input. */
export class Unsupported extends Error {}

/** Whether the eight bytes behind `bytes` are their 64-bit FNV-1a hash, computed in two halves of 32 bits. */
function isSound(data, start, end) {
  let high = 0xcbf29ce4;
  let low = 0x84222325;
  for (let i = start; i < end; i++) {
    const product = ((low ^ data[i]) >>> 0) * 435; // the prime is 2^40 + 435
    high = (Math.imul(high, 435) + (((low ^ data[i]) << 8) | 0) + Math.floor(product / 2 ** 32)) | 0;
    low = product | 0;
  }
  return data.readInt32LE(end) === low && data.readInt32LE(end + 4) === high;
}

/** A BigInt as the protocol writes it: a number up to 2^53, a decimal string beyond. */
function integer(value) {
  return value <= 2n ** 53n ? Number(value) : String(value);
}

/** The reply to a read request for otj. */
export function read(path) {
  const data = fs.readFileSync(path);
  if (data.length < 24 || data.toString("latin1", 0, 8) !== "ORRERYTJ")
    throw new Refused("not an otj file, or one that ends in its first fields");
  const version = data.readUInt32LE(8);
  const flags = data.readUInt32LE(12);
  if (version !== 1) throw new Refused(`version ${version} is not known`);
  if ((flags & ~3) !== 0) throw new Refused(`flags ${flags} set a reserved bit`);
  const single = (flags & 1) !== 0;
  const velocities = (flags & 2) !== 0;
  const scalar = single ? 4 : 8;
  const names = ["x", "y", "z", "vx", "vy", "vz"].slice(0, velocities ? 6 : 3);
  const claimed = data.readBigUInt64LE(16); // may be anything in a damaged file, so it stays a BigInt until it fits
  if (32n + BigInt(scalar) * (1n + claimed) > data.length)
    throw new Refused(`the header of ${claimed} particles does not fit into ${data.length} bytes`);
  const particles = Number(claimed);
  const header = 32 + scalar + particles * scalar;
  const frame = 16 + scalar + names.length * particles * scalar;
  if (!isSound(data, 0, header - 8)) throw new Refused("the checksum of the header is wrong");

  // The bytes as they stand in the file: a NaN keeps its payload only if it never becomes a JavaScript number.
  const array = (start, count) => ({
    dtype: single ? "f32" : "f64",
    shape: count === undefined ? [] : [count],
    data: data.toString("base64", start, start + scalar * (count ?? 1)),
  });

  const frames = [];
  for (let start = header; start + frame <= data.length; start += frame) {
    if (!isSound(data, start, start + frame - 8)) break; // the frames before a damaged one are handed back
    const out = { step: integer(data.readBigUInt64LE(start)), time: array(start + 8) };
    names.forEach((name, i) => (out[name] = array(start + 8 + scalar + i * particles * scalar, particles)));
    frames.push(out);
  }
  return {
    format: "otj",
    particles,
    precision: single ? "single" : "double",
    velocities,
    timestep: array(24),
    masses: array(24 + scalar, particles),
    frames,
  };
}
