// Packed data (earshot.view.world): JSON with plain values, and arrays of numbers behind it.

const ARRAYS = { float32: Float32Array, float64: Float64Array, int32: Int32Array, uint16: Uint16Array, uint8: Uint8Array };

async function unpacked(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const found = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const arrays = {};
  for (const [name, [kind, count, at]] of Object.entries(found.arrays)) {
    arrays[name] = new ARRAYS[kind](buffer, 4 + length + at, count);
  }
  return { meta: found.meta, arrays };
}

function fromBase64(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

// What the document carries, by name.
function embedded() {
  const found = new Map();
  for (const block of document.querySelectorAll("script[data-name]")) {
    const name = block.dataset.name === "start" ? "start" : utf8(fromBase64(block.dataset.name));
    found.set(name, block.textContent);
  }
  return found;
}

function utf8(bytes) {
  return new TextDecoder().decode(bytes);
}

// Worlds and runs: out of the document, or from the server that served it.
class Catalogue {
  constructor() {
    this.blocks = embedded();
    const start = JSON.parse(utf8(fromBase64(this.blocks.get("start"))));
    this.title = start.title;
    this.served = start.served;
    this.worlds = start.worlds;
  }

  async fetch(address) {
    if (this.blocks.has(address)) return unpacked(fromBase64(this.blocks.get(address)));
    if (!this.served) throw new Error(`this page does not have ${address}`);
    const answer = await fetch(address);
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return unpacked(await answer.arrayBuffer());
  }

  world(key) {
    return this.fetch(`/world?${new URLSearchParams({ world: key })}`);
  }

  run(world, key) {
    return this.fetch(`/run?${new URLSearchParams({ world, run: key })}`);
  }

  async why(world, run, event, node) {
    const answer = await fetch(`/why?${new URLSearchParams({ world, run, event, node })}`);
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return answer.json();
  }

  async updates() {
    const answer = await fetch("/updates");
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return answer.json();
  }
}
