// Reads the step numbers and times of an mrec trajectory, as far as attributes give them, without packages. What it does
// not read yet it calls unsupported. Put the implementation that you want to test in its place.
import fs from "node:fs";
import path from "node:path";

/** The input is not what the format allows. */
export class Refused extends Error {}

/** There is no way to do this, whatever the input. */
export class Unsupported extends Error {}

/** A number as it is spelled. The format tells 4 from 4.0, and 9007199254740993 from its neighbours; JSON.parse does
 * neither. */
class Spelled {
  constructor(text) {
    this.text = text;
  }
}

function parse(text) {
  JSON.parse(text); // throws where it is no JSON
  const marked = text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) =>
    token[0] === '"' ? token : `{"\\u0000":"${token}"}`,
  );
  return JSON.parse(marked, (_, value) => (value?.["\u0000"] === undefined ? value : new Spelled(value["\u0000"])));
}

const isInteger = (value) => value instanceof Spelled && /^-?\d+$/.test(value.text);
const isReal = (value) => value instanceof Spelled && Number.isFinite(Number(value.text));
const isObject = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Spelled);
const ZERO = new Spelled("0");

/** A BigInt as the protocol writes it: a number up to 2^53 in magnitude, a decimal string beyond. */
function integer(value) {
  return value >= -(2n ** 53n) && value <= 2n ** 53n ? Number(value) : String(value);
}

function scalar(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return { dtype: "f64", shape: [], data: bytes.toString("base64") };
}

/** The attributes of a Zarr group; null where there is no node. */
function attributesOf(folder) {
  const file = path.join(folder, "zarr.json");
  if (!fs.existsSync(file)) return null;
  let document;
  try {
    document = parse(fs.readFileSync(file, "utf8"));
  } catch (error) {
    throw new Refused(`${path.basename(folder)}/zarr.json is not JSON: ${error.message}`);
  }
  if (!isObject(document) || document.zarr_format?.text !== "3" || document.node_type !== "group")
    throw new Refused(`${path.basename(folder)} is not a Zarr V3 group`);
  const attributes = document.attributes ?? {};
  if (!isObject(attributes)) throw new Refused(`the attributes of ${path.basename(folder)} are not an object`);
  return attributes;
}

/** start and stride of a progression; null where there is none. */
function progression(attributes, name, nstep, fits) {
  if (!Object.hasOwn(attributes, name)) return null;
  const value = attributes[name];
  if (!isObject(value) || !fits(value.start)) throw new Refused(`${name} is malformed`);
  const given = Object.hasOwn(value, "stride");
  if (given && !fits(value.stride)) throw new Refused(`${name} is malformed`);
  if (!given && nstep >= 2n) throw new Refused(`${name} has no stride`);
  return [value.start, given ? value.stride : ZERO];
}

/** The reply to a read request for mrec. */
export function read(root) {
  if (!fs.statSync(root).isDirectory()) throw new Unsupported("packed records");
  const meta = attributesOf(path.join(root, "meta")) ?? {};
  if (Object.hasOwn(meta, "molrec_version") && meta.molrec_version?.text !== "1")
    throw new Refused("the molrec_version is not known");
  const trajectory = path.join(root, "trajectory");
  const has = (name) => fs.existsSync(path.join(trajectory, name));
  const attributes = attributesOf(trajectory);
  if (attributes === null) throw new Refused("there is no group trajectory");

  let nstep = 0n;
  if (Object.hasOwn(attributes, "nstep")) {
    if (!isInteger(attributes.nstep) || BigInt(attributes.nstep.text) < 0n) throw new Refused("nstep is no count");
    nstep = BigInt(attributes.nstep.text);
  } else if (Object.hasOwn(attributes, "step_progression") || Object.hasOwn(attributes, "time_progression")) {
    throw new Refused("a progression without nstep");
  } else if (has("step")) {
    throw new Unsupported("arrays");
  }

  const steps = progression(attributes, "step_progression", nstep, isInteger)?.map((value) => BigInt(value.text));
  const times = progression(attributes, "time_progression", nstep, isReal)?.map((value) => Number(value.text));
  if (nstep > 0n && ((!steps && has("step")) || (!times && has("time")))) throw new Unsupported("arrays");
  if (nstep > 0n && !steps) throw new Refused("nothing numbers the frames");
  const stepOf = (i) => steps[0] + i * steps[1];
  if (nstep > 0n && [0n, nstep - 1n].some((i) => BigInt.asIntN(64, stepOf(i)) !== stepOf(i)))
    throw new Refused("a step number is outside the 64-bit integers");

  const declared = attributes.sequence_schema;
  if (declared === undefined) throw new Unsupported("a trajectory without a declaration");
  if (!isObject(declared)) throw new Refused("sequence_schema is not an object");
  for (const [part, what] of [["blocks", "blocks"], ["meta", "metadata per step"]])
    if (Object.keys(declared[part] ?? {}).length > 0) throw new Unsupported(what);
  if (has("box")) throw new Unsupported("cells");

  const frames = [];
  for (let i = 0n; i < nstep; i++) {
    const frame = { step: integer(stepOf(i)), meta: {}, blocks: {} };
    if (times) frame.time = scalar(nstep === 1n ? times[0] : times[0] + Number(i) * times[1]);
    frames.push(frame);
  }
  return { format: "mrec", nstep: integer(nstep), frames };
}
