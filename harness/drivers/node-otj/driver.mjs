// The driver: JSON Lines on standard input and output, one reply to each request.
import fs from "node:fs";
import { COMPONENTS, LIMIT, Reader, Refused, Writer, check } from "./otj.mjs";

const HELLO = {
  name: "node-otj",
  version: "1.0",
  language: "JavaScript",
  formats: { otj: ["read", "write"] },
  features: ["range", "single", "double", "check:otj"],
};
const EXACT = 1n << 53n;

/** This driver has no way to do what was asked. */
class Unsupported extends Error {}

let writer = null;

// ---- output: in pieces, so that a long reply is never in memory as a whole ----

let waiting = [];
let size = 0;
let begun = false; // whether a part of the open reply has left

function put(text) {
  waiting.push(text);
  size += text.length;
  if (size >= 1 << 20) send();
}

function drop() {
  waiting = [];
  size = 0;
}

function send() {
  const bytes = Buffer.from(waiting.join(""));
  drop();
  begun = true;
  for (let done = 0; done < bytes.length; ) {
    try {
      done += fs.writeSync(1, bytes, done);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1); // the pipe is full: a millisecond, then again
    }
  }
}

// ---- what travels exactly ----

/** A BigInt as JSON: a number up to 2^53 in magnitude, beyond it a decimal string. */
function integerText(value) {
  return value > EXACT || value < -EXACT ? `"${value}"` : `${value}`;
}

/** The BigInt of a JSON number or decimal string; null where it is none. */
function integerFrom(value) {
  if (typeof value === "number") return Number.isSafeInteger(value) || value === 2 ** 53 ? BigInt(value) : null;
  return typeof value === "string" && /^-?[0-9]{1,39}$/.test(value) ? BigInt(value) : null;
}

function putArray(bytes, single, shape) {
  put(`{"dtype":"${single ? "f32" : "f64"}","shape":[${shape}],"data":"`);
  const part = 3 << 18; // a multiple of three bytes encodes without padding
  for (let from = 0; from < bytes.length; from += part) put(bytes.toString("base64", from, from + part));
  put('"}');
}

/** The bytes of an array with this dtype and shape ([count], or [] without a count); `Refused` where it is another. */
function bytesOf(array, name, single, count = null) {
  const dtype = single ? "f32" : "f64";
  if (array?.dtype !== dtype) throw new Refused(`${name}: not an array of ${dtype}`);
  const shape = Array.isArray(array.shape) ? array.shape.map(integerFrom) : [null];
  if (shape.length !== (count === null ? 0 : 1) || (count !== null && shape[0] !== count))
    throw new Refused(`${name}: not ${count === null ? "a single value" : `an array of ${count} values`}`);
  const bytes = typeof array.data === "string" ? Buffer.from(array.data, "base64") : null;
  const length = (count ?? 1n) * (single ? 4n : 8n);
  // What is not base64 is skipped by the decoder: encoded again, only base64 proper is the same.
  if (bytes === null || BigInt(bytes.length) !== length || bytes.toString("base64") !== array.data)
    throw new Refused(`${name}: the data are not the base64 of ${length} bytes`);
  return bytes;
}

// ---- requests ----

function needOtj(request) {
  if (request.format !== "otj") throw new Unsupported("formats other than otj");
  if (typeof request.path !== "string" || request.path === "") throw new Error("a request without a path");
}

function rangeOf(request) {
  if (request.frames === undefined) return null;
  const range = Array.isArray(request.frames) ? request.frames.map(integerFrom) : [];
  if (range.length !== 2 || range.some((n) => n === null || n < 0n)) throw new Error("frames is not a pair of counts");
  return range;
}

function read(request) {
  needOtj(request);
  const range = rangeOf(request);
  const reader = new Reader(request.path);
  try {
    putTrajectory(request.id, reader, range);
  } finally {
    reader.close();
  }
}

function putTrajectory(id, reader, range) {
  const { shape } = reader;
  const { single } = shape;
  put(`{"id":${id},"ok":{"format":"otj","particles":${integerText(shape.particles)}`);
  put(`,"precision":"${single ? "single" : "double"}","velocities":${shape.velocities},"timestep":`);
  putArray(reader.timestep, single, "");
  put(',"masses":');
  putArray(reader.masses, single, shape.particles);
  put(',"frames":[');
  const [first, stop] = range ?? [0n, reader.frames];
  let n = first;
  let damaged = false;
  for (; n < stop && n < reader.frames; n++) {
    const frame = reader.frame(n);
    if (frame === null) {
      damaged = true;
      break;
    }
    put(`${n > first ? "," : ""}{"step":${integerText(frame.readBigUInt64LE(0))},"time":`);
    putArray(reader.time(frame), single, "");
    for (let i = 0; i < shape.components; i++) {
      put(`,"${COMPONENTS[i]}":`);
      putArray(reader.component(frame, i), single, shape.particles);
    }
    put("}");
  }
  put("]");
  if (damaged) put(`,"error":{"reason":"the checksum of frame ${n} is wrong"}`);
  // A range says nothing about what lies behind it.
  if (range === null) {
    const left = reader.length - reader.start(n);
    const state = damaged ? "damaged" : left > 0n ? "cut" : "clean";
    put(`,"tail":{"state":"${state}","bytes":${integerText(left)}}`);
  }
  put("}}\n");
}

function checkFile(request) {
  needOtj(request);
  const violations = [];
  check(request.path, (clause, frame, offset, message) => {
    const place = frame === null ? { path: "header" } : { path: "frame", index: Number(frame) };
    violations.push({ clause, ...place, offset: Number(offset), message });
  });
  return { violations };
}

function create(request) {
  needOtj(request);
  const declared = request.declaration;
  if (declared === undefined) throw new Unsupported("deriving a declaration from frames");
  dropWriter();
  const particles = integerFrom(declared.particles);
  if (particles === null || particles < 0n || particles >= LIMIT)
    throw new Refused("particles is not an integer from 0 to 2^64 - 1");
  if (declared.precision !== "single" && declared.precision !== "double")
    throw new Refused("precision is neither single nor double");
  if (typeof declared.velocities !== "boolean") throw new Refused("velocities is neither true nor false");
  const single = declared.precision === "single";
  const timestep = bytesOf(declared.timestep, "timestep", single);
  const masses = bytesOf(declared.masses, "masses", single, particles);
  writer = new Writer(request.path, { particles, single, velocities: declared.velocities, timestep, masses });
}

function openWriter() {
  if (writer === null) throw new Error("no file is being written");
  return writer;
}

function append(request) {
  const { shape } = openWriter();
  const step = integerFrom(request.step);
  if (step === null) throw new Error("step is not an integer");
  if (step < 0n || step >= LIMIT) throw new Refused("step is not in 0 to 2^64 - 1");
  const names = COMPONENTS.slice(0, shape.components);
  const extra = Object.keys(request.frame).find((name) => !names.includes(name));
  if (extra !== undefined) throw new Refused(`${extra}: this file carries no such component`);
  writer.append(step, names.map((name) => bytesOf(request.frame[name], name, shape.single, shape.particles)));
}

function closeWriter() {
  const closing = openWriter();
  writer = null;
  closing.close();
}

function dropWriter() {
  if (writer !== null) closeWriter();
}

function hello(request) {
  if (request.protocol !== 1) throw new Error("this driver speaks protocol 1");
  return HELLO;
}

const OPERATIONS = {
  hello,
  read,
  check: checkFile,
  create,
  append,
  flush: () => openWriter().flush(),
  close: closeWriter,
  bye: () => {},
};

function reason(error) {
  if (error instanceof Refused) return { refused: { reason: error.message } };
  if (error instanceof Unsupported) return { unsupported: { what: error.message } };
  console.error(error);
  return { error: { message: String(error?.message ?? error).slice(0, 500) } };
}

/** Answer one line; false after `bye`. */
function answer(line) {
  const request = JSON.parse(line);
  if (!Number.isSafeInteger(request?.id)) throw new Error("a request without an id");
  begun = false;
  try {
    const operation = Object.hasOwn(OPERATIONS, request.op) ? OPERATIONS[request.op] : null;
    if (operation === null) throw new Unsupported("this operation");
    const body = operation(request);
    // `read` has put its reply already, frame by frame.
    if (operation !== read) put(`${JSON.stringify({ id: request.id, ok: body ?? {} })}\n`);
  } catch (error) {
    // Half of a reply cannot be taken back: then the process ends, and says why on its log.
    if (begun) throw error;
    drop();
    put(`${JSON.stringify({ id: request.id, ...reason(error) })}\n`);
  }
  send();
  return request.op !== "bye";
}

/** Whole lines of the input. A line ends with a line feed and nothing else: the readline module would also split at
 * U+2028, which may stand in a JSON string. */
async function* lines(input) {
  let rest = [];
  for await (let chunk of input) {
    for (let end; (end = chunk.indexOf(10)) >= 0; chunk = chunk.subarray(end + 1)) {
      yield Buffer.concat([...rest, chunk.subarray(0, end)]).toString("utf8");
      rest = [];
    }
    rest.push(chunk);
  }
}

try {
  for await (const line of lines(process.stdin)) if (!answer(line)) break;
  dropWriter();
} catch (error) {
  console.error(`node-otj: ${error?.stack ?? error}`);
  process.exitCode = 1;
}
process.stdin.destroy();
