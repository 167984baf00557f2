// The driver @NAME@: one JSON object a line on standard input, one reply to each on standard output.
import fs from "node:fs";
import { Refused, Unsupported, read } from "./reader.mjs";

const HELLO = {
  name: "@NAME@",
  version: "0.1", // of the implementation under test
  language: "JavaScript",
  formats: { @FORMAT@: ["read"] },
  features: [],
};

const OPERATIONS = {
  hello(request) {
    if (request.protocol !== 1) throw new Error("this driver speaks protocol 1");
    return HELLO;
  },
  read(request) {
    if (request.format !== "@FORMAT@") throw new Unsupported("formats other than @FORMAT@");
    return read(request.path);
  },
  bye: () => ({}),
};

function answer(request) {
  if (!Object.hasOwn(OPERATIONS, request.op)) return { unsupported: { what: request.op } };
  try {
    return { ok: OPERATIONS[request.op](request) };
  } catch (error) {
    if (error instanceof Refused) return { refused: { reason: error.message } };
    if (error instanceof Unsupported) return { unsupported: { what: error.message } };
    console.error(error); // standard error is the log; console.log would spoil the replies
    return { error: { message: String(error) } };
  }
}

// A line ends with a line feed and nothing else; node:readline would also split at U+2028.
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

for await (const line of lines(process.stdin)) {
  const request = JSON.parse(line);
  const reply = Buffer.from(`${JSON.stringify({ id: request.id, ...answer(request) })}\n`);
  for (let done = 0; done < reply.length; ) done += fs.writeSync(1, reply, done);
  if (request.op === "bye") break;
}
process.stdin.destroy();
