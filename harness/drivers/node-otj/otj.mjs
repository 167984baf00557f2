// The otj format: reading, checking, writing. A frame at a time is held in memory; scalars stay bytes, because a NaN
// that passes through a JavaScript number may lose its payload.
import fs from "node:fs";

export const COMPONENTS = ["x", "y", "z", "vx", "vy", "vz"];
const MAGIC = Buffer.from("ORRERYTJ", "latin1");
const FIXED = 24;
const SINGLE = 1;
const VELOCITIES = 2;
/** One more than the largest number that eight bytes hold. */
export const LIMIT = 1n << 64n;

/** The input, or what a writer was handed, is not what the format allows. */
export class Refused extends Error {}

/** 64-bit FNV-1a as two halves of 32 bits: a BigInt for every byte would be a hundred times slower. */
export class Checksum {
  high = 0xcbf29ce4 | 0;
  low = 0x84222325 | 0;

  update(bytes) {
    let { high, low } = this;
    for (let i = 0; i < bytes.length; i++) {
      low ^= bytes[i];
      // times the prime 2^40 + 435: the low half by 16 bits, so that every product fits into an int32
      const first = (low & 0xffff) * 435;
      const second = (low >>> 16) * 435 + (first >>> 16);
      high = (Math.imul(high, 435) + (low << 8) + (second >>> 16)) | 0;
      low = (second << 16) | (first & 0xffff);
    }
    this.high = high;
    this.low = low;
    return this;
  }

  isAt(bytes, offset) {
    return bytes.readInt32LE(offset) === this.low && bytes.readInt32LE(offset + 4) === this.high;
  }

  bytes() {
    const out = Buffer.alloc(8);
    out.writeInt32LE(this.low, 0);
    out.writeInt32LE(this.high, 4);
    return out;
  }
}

/** Lengths of a file's parts, all BigInt: a number of particles from a damaged header may be anything. */
function shapeOf(particles, single, velocities) {
  const scalar = single ? 4n : 8n;
  const components = velocities ? 6 : 3;
  const array = particles * scalar;
  const header = 32n + scalar + array;
  const frame = 16n + scalar + BigInt(components) * array;
  return { particles, single, velocities, components, scalar, array, header, frame };
}

export class Reader {
  /** Open a file and hold its header to the format. `report(clause, frame, offset, message)` collects breaches, up to
   * the first after which nothing more can be read; without it a breach is `Refused`. */
  constructor(path, report = null) {
    this.report = report;
    this.frames = 0n;
    this.file = fs.openSync(path, "r");
    try {
      const facts = fs.fstatSync(this.file, { bigint: true });
      if (!facts.isFile()) throw new Refused("not a regular file");
      this.length = facts.size;
      this.readHeader();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close() {
    fs.closeSync(this.file);
  }

  breach(clause, frame, offset, message) {
    if (this.report === null) throw new Refused(message);
    this.report(clause, frame, offset, message);
  }

  readAt(offset, size) {
    const bytes = Buffer.alloc(Number(size));
    for (let done = 0; done < bytes.length; ) {
      const got = fs.readSync(this.file, bytes, done, Math.min(bytes.length - done, 1 << 26), offset + BigInt(done));
      if (got === 0) throw new Error(`the file became shorter while it was read: no byte at ${offset + BigInt(done)}`);
      done += got;
    }
    return bytes;
  }

  readHeader() {
    const length = this.length;
    const fixed = this.readAt(0n, length < FIXED ? length : FIXED);
    const magic = fixed.subarray(0, MAGIC.length);
    if (!magic.equals(MAGIC.subarray(0, magic.length)))
      return this.breach("OTJ-HEADER-01", null, 0, "not an otj file: it does not start with ORRERYTJ");
    if (fixed.length >= 12 && fixed.readUInt32LE(8) !== 1)
      return this.breach("OTJ-HEADER-03", null, 8, `version ${fixed.readUInt32LE(8)} is not known`);
    if (fixed.length < FIXED)
      return this.breach("OTJ-HEADER-10", null, 0, `the file ends inside its header, after ${length} bytes`);
    const flags = fixed.readUInt32LE(12);
    if ((flags & ~(SINGLE | VELOCITIES)) !== 0)
      this.breach("OTJ-FLAGS-03", null, 12, `flags 0x${flags.toString(16).padStart(8, "0")} set a reserved bit`);
    const shape = shapeOf(fixed.readBigUInt64LE(16), (flags & SINGLE) !== 0, (flags & VELOCITIES) !== 0);
    if (shape.header > length)
      return this.breach("OTJ-HEADER-10", null, 16, `the header of ${shape.particles} particles does not fit into ${length} bytes`);
    this.shape = shape;
    this.header = this.readAt(0n, shape.header);
    this.frames = (length - shape.header) / shape.frame;
    const end = this.header.length - 8;
    if (!new Checksum().update(this.header.subarray(0, end)).isAt(this.header, end))
      this.breach("OTJ-SUM-02", null, end, "the checksum of the header is wrong");
  }

  get timestep() {
    return this.header.subarray(FIXED, FIXED + Number(this.shape.scalar));
  }

  get masses() {
    return this.header.subarray(FIXED + Number(this.shape.scalar), -8);
  }

  start(n) {
    return this.shape.header + n * this.shape.frame;
  }

  /** The bytes of frame n, or null where its checksum is wrong. */
  frame(n) {
    const bytes = this.readAt(this.start(n), this.shape.frame);
    const end = bytes.length - 8;
    return new Checksum().update(bytes.subarray(0, end)).isAt(bytes, end) ? bytes : null;
  }

  time(frame) {
    return frame.subarray(8, 8 + Number(this.shape.scalar));
  }

  component(frame, i) {
    const array = Number(this.shape.array);
    const from = 8 + Number(this.shape.scalar) + i * array;
    return frame.subarray(from, from + array);
  }
}

/** A whole number as the nearest binary32, ties to even. By way of a double it would be rounded twice. */
function toSingle(whole) {
  const extra = BigInt(Math.max(0, whole.toString(2).length - 24));
  const unit = 1n << extra;
  const rest = whole & (unit - 1n);
  let kept = whole >> extra;
  if (rest * 2n > unit || (rest * 2n === unit && (kept & 1n) === 1n)) kept += 1n;
  return Number(kept << extra);
}

/** The time of a step as stored: the step as a scalar, times the timestep, each rounded in the file's precision. */
function timeOf(step, timestep) {
  const out = Buffer.alloc(timestep.length);
  // The product of two binary32 values is exact in a double, so the store rounds once.
  if (timestep.length === 4) out.writeFloatLE(toSingle(step) * timestep.readFloatLE(0));
  else out.writeDoubleLE(Number(step) * timestep.readDoubleLE(0));
  return out;
}

function isNaNBytes(bytes) {
  return Number.isNaN(bytes.length === 4 ? bytes.readFloatLE(0) : bytes.readDoubleLE(0));
}

/** Place of a scalar among all of its width, so that neighbours differ by one. */
function ordinal(bytes) {
  const bits = bytes.length === 4 ? BigInt(bytes.readUInt32LE(0)) : bytes.readBigUInt64LE(0);
  const sign = 1n << BigInt(8 * bytes.length - 1);
  return bits & sign ? -1n - (bits ^ sign) : bits;
}

/** Report every breach of the format in a file. */
export function check(path, report) {
  const reader = new Reader(path, report);
  try {
    for (let n = 0n; n < reader.frames; n++) {
      const frame = reader.frame(n);
      if (frame === null) {
        report("OTJ-SUM-03", n, reader.start(n + 1n) - 8n, "the checksum is wrong");
        continue;
      }
      const found = reader.time(frame);
      const right = timeOf(frame.readBigUInt64LE(0), reader.timestep);
      if (found.equals(right) || (isNaNBytes(found) && isNaNBytes(right))) continue;
      const apart = ordinal(found) - ordinal(right);
      const close = apart >= -2n && apart <= 2n && !isNaNBytes(found) && !isNaNBytes(right);
      report(close ? "OTJ-FRAME-08" : "OTJ-FRAME-07", n, reader.start(n) + 8n, "the time is not the step times the timestep");
    }
  } finally {
    reader.close();
  }
}

export class Writer {
  /** `timestep` and `masses` are the scalars' bytes. A file that is there already is an error. */
  constructor(path, { particles, single, velocities, timestep, masses }) {
    this.shape = shapeOf(particles, single, velocities);
    this.timestep = timestep;
    this.broken = false;
    const fixed = Buffer.alloc(FIXED);
    MAGIC.copy(fixed);
    fixed.writeUInt32LE(1, 8);
    fixed.writeUInt32LE((single ? SINGLE : 0) | (velocities ? VELOCITIES : 0), 12);
    fixed.writeBigUInt64LE(particles, 16);
    this.file = fs.openSync(path, "wx");
    try {
      this.emit([fixed, timestep, masses]);
    } catch (error) {
      fs.closeSync(this.file);
      throw error;
    }
  }

  /** Write parts, then their checksum. */
  emit(parts) {
    if (this.broken) throw new Error("an earlier write failed: the file ends inside a frame");
    const sum = new Checksum();
    for (const part of parts) sum.update(part);
    try {
      for (const part of [...parts, sum.bytes()])
        for (let done = 0; done < part.length; )
          done += fs.writeSync(this.file, part, done, Math.min(part.length - done, 1 << 26));
    } catch (error) {
      this.broken = true;
      throw error;
    }
  }

  append(step, components) {
    const start = Buffer.alloc(8);
    start.writeBigUInt64LE(step);
    this.emit([start, timeOf(step, this.timestep), ...components]);
  }

  flush() {
    fs.fsyncSync(this.file);
  }

  close() {
    try {
      this.flush();
    } finally {
      fs.closeSync(this.file);
    }
  }
}
